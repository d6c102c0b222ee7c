// Compile backend @FULL_NAME@. As generated, it computes each feed-forward layer as one node of the autograd graph.
// Select it with [compile] enable = true and backend = "@FULL_NAME@".
// [compile_backend."@FULL_NAME@"] holds its options.
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <titan/compile_backend.h>
#include <titan/nn/feed_forward.h>
#include <titan/plugin.h>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct @CLASS@Options {
  std::vector<std::string> components = {"model", "loss"};  // takes the value of [compile] components
};

/// w2(silu(w1 x) ⊙ w3 x). Saves x, w1 x and w3 x, and computes the product with the gate again in the backward.
struct FusedFeedForward : torch::autograd::Function<FusedFeedForward> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& w1, const Tensor& w2, const Tensor& w3) {
    const Tensor gate = at::linear(x, w1), up = at::linear(x, w3);
    ctx->save_for_backward({x, gate, up, w1, w2, w3});  // saved this way, recomputation and offload see them
    return at::linear(at::silu(gate) * up, w2);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto rows = [](const Tensor& x) { return x.reshape({-1, x.size(-1)}); };
    const variable_list saved = ctx->get_saved_variables();
    const Tensor x = rows(saved[0]), gate = rows(saved[1]), up = rows(saved[2]), dout = rows(grads[0]);
    const Tensor s = at::sigmoid(gate), hidden = gate * s, dproduct = dout.mm(saved[4]);
    const Tensor dgate = dproduct * up * (s + hidden * (1 - s)), dup = dproduct * hidden;
    return {(dgate.mm(saved[3]) + dup.mm(saved[5])).view(saved[0].sizes()), dgate.t().mm(x), dout.t().mm(hidden * up),
            dup.t().mm(x)};
  }
};

class Kernel final : public titan::nn::FeedForwardKernel {
 public:
  Tensor feed_forward(const Tensor& x, const titan::nn::FeedForwardWeights& w, const titan::Batch&) override {
    return FusedFeedForward::apply(x, w.w1.value(), w.w2.value(), w.w3.value());  // gathered by data parallelism
  }
};

class @CLASS@ final : public titan::CompileBackend {
 public:
  @CLASS@(const @CLASS@Options& options, const titan::TransformContext&) : options_(options) {}

  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    if (!titan::compiles(options_.components, "model")) return;
    part.visit_modules([](const std::string&, titan::nn::Module& module) {
      auto* layer = dynamic_cast<titan::nn::FeedForward*>(&module);
      if (layer && layer->computed_by().empty()) layer->set_kernel("@FULL_NAME@", std::make_unique<Kernel>());
    });
  }

 private:
  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Feed-forward layers as one node of the graph.")
      .option("components", &@CLASS@Options::components, "Parts of the job to compile")
      .one_of({"model", "loss"})
      .fed_by("compile.components");
}
