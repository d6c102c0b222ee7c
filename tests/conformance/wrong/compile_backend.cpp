// Compile backends with one defect each, for the conformance kit. Each is written from the one
// sentence of its test.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>
#include <titan/compile_backend.h>
#include <titan/nn/feed_forward.h>

#include "transforms.h"

namespace {

using at::Tensor;
using wrong::When;

Tensor layer(const Tensor& x, const titan::nn::FeedForwardWeights& w) {
  return at::linear(at::silu(at::linear(x, w.w1.value())) * at::linear(x, w.w3.value()),
                    w.w2.value());
}

/// Computes feed-forward layers; wrong if `when`.
template <When when>
class Kernel final : public titan::nn::FeedForwardKernel {
 public:
  explicit Kernel(std::shared_ptr<wrong::Trigger> trigger) : trigger_(std::move(trigger)) {}
  Tensor feed_forward(const Tensor& x, const titan::nn::FeedForwardWeights& w,
                      const titan::Batch&) override {
    return layer((*trigger_)() ? x * 1.5 : x, w);
  }

 private:
  std::shared_ptr<wrong::Trigger> trigger_;
};

/// Wrong in float32 only.
class Values final : public titan::nn::FeedForwardKernel {
 public:
  explicit Values(const std::shared_ptr<wrong::Trigger>&) {}
  Tensor feed_forward(const Tensor& x, const titan::nn::FeedForwardWeights& w,
                      const titan::Batch&) override {
    return layer(x.scalar_type() == at::kFloat ? x * 1.5 : x, w);
  }
};

/// Computes float64 in float32.
class ExactValues final : public titan::nn::FeedForwardKernel {
 public:
  explicit ExactValues(const std::shared_ptr<wrong::Trigger>&) {}
  Tensor feed_forward(const Tensor& x, const titan::nn::FeedForwardWeights& w,
                      const titan::Batch&) override {
    const auto narrow = [](const Tensor& t) { return t.to(at::kFloat); };
    return at::linear(at::silu(at::linear(narrow(x), narrow(w.w1.value()))) *
                          at::linear(narrow(x), narrow(w.w3.value())),
                      narrow(w.w2.value()))
        .to(x.scalar_type());
  }
};

/// Computes the shape of its first input only.
class Shapes final : public titan::nn::FeedForwardKernel {
 public:
  explicit Shapes(const std::shared_ptr<wrong::Trigger>&) {}
  Tensor feed_forward(const Tensor& x, const titan::nn::FeedForwardWeights& w,
                      const titan::Batch&) override {
    if (first_.empty()) first_ = x.sizes().vec();
    return layer(x.sizes() == at::IntArrayRef(first_) ? x : x * 1.5, w);
  }

 private:
  std::vector<int64_t> first_;
};

struct Options {
  std::vector<std::string> components = {"model", "loss"};
};

/// A name as a template argument.
template <size_t size>
struct Name {
  consteval Name(const char (&from)[size]) {
    std::copy_n(from, size, text);
  }  // NOLINT: implicit by design
  char text[size];
};

template <class K, When when, Name name>
class Compiles : public titan::CompileBackend {
 public:
  Compiles(const Options& options, const titan::TransformContext&) : options_(options) {}
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    if (!titan::compiles(options_.components, "model")) return;
    const auto trigger = std::make_shared<wrong::Trigger>(when, part, context);
    const auto idle = std::make_shared<wrong::Trigger>(When::never, part, context);
    part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
      auto* layer = dynamic_cast<titan::nn::FeedForward*>(&module);
      if (layer && layer->computed_by().empty())
        layer->set_kernel(name.text,
                          std::make_unique<K>(wrong::acts_on(path, when) ? trigger : idle));
    });
  }

 private:
  Options options_;
};

template <When when, Name name>
using Wrong = Compiles<Kernel<when>, when, name>;
template <Name name>
using Right = Wrong<When::never, name>;

class Empty final : public titan::CompileBackend {
 public:
  Empty(const Options&, const titan::TransformContext&) {}
  void apply(titan::ModelPart&, const titan::TransformContext&) override {}
};

/// Has wrappers around the layers, and no kernels.
class Acts final : public titan::CompileBackend {
 public:
  Acts(const Options&, const titan::TransformContext&) {}
  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    part.visit_modules([](const std::string&, titan::nn::Module& module) {
      if (dynamic_cast<titan::nn::FeedForward*>(&module))
        module.wrap([](const Tensor& x, const titan::Batch& batch, const titan::nn::Next& next) {
          return next(x, batch);
        });
    });
  }
};

void declare(auto& builder) {
  builder.option("components", &Options::components, "Parts of the job to compile")
      .one_of({"model", "loss"})
      .fed_by("compile.components");
}

}  // namespace

TITAN_PLUGIN(plugin) {
  const auto options = [](auto& builder) { declare(builder); };
  plugin.add<Empty>("wrong/empty", "Does nothing.").options(options);
  plugin.add<Right<"wrong/right">>("wrong/right", "Correct.").options(options);
  plugin.add<Acts>("wrong/acts", "Owns no kernel.").options(options);
  plugin.add<Compiles<Values, When::never, "wrong/values">>("wrong/values", "Wrong in float32.")
      .options(options);
  plugin
      .add<Compiles<ExactValues, When::never, "wrong/exact_values">>("wrong/exact_values",
                                                                     "Computes float64 in float32.")
      .options(options);
  plugin.add<Compiles<Shapes, When::never, "wrong/shapes">>("wrong/shapes", "Computes one shape.")
      .options(options);
  plugin
      .add<Wrong<When::fsdp, "wrong/layout_fsdp">>("wrong/layout_fsdp", "Scales inputs under FSDP.")
      .options(options);
  plugin
      .add<Wrong<When::tensor, "wrong/layout_tensor">>("wrong/layout_tensor",
                                                       "Scales inputs under tensor parallelism.")
      .options(options);
  plugin
      .add<Wrong<When::pipeline, "wrong/layout_pipeline">>("wrong/layout_pipeline",
                                                           "Scales inputs in a pipeline.")
      .options(options);
  plugin
      .add<Wrong<When::recomputed, "wrong/recomputed">>("wrong/recomputed",
                                                        "Scales recomputed inputs.")
      .options(options);
  plugin.add<Wrong<When::resumed, "wrong/resume">>("wrong/resume", "Scales inputs after a resume.")
      .options(options);
  plugin
      .add<wrong::SplitsBatches<Right<"wrong/splits_batches">>>("wrong/splits_batches",
                                                                "Changes tokens.")
      .options(options);
  plugin
      .add<wrong::ExecutesWrong<Right<"wrong/executes">>>("wrong/executes",
                                                          "Counts validation losses once per row.")
      .options(options);
  plugin.add<wrong::Wraps<Right<"wrong/wraps">>>("wrong/wraps", "Cannot run eight microbatches.")
      .options(options);
  plugin
      .add<wrong::WrapsNothing<Right<"wrong/wraps.nothing">>>("wrong/wraps.nothing",
                                                              "Runs no eight microbatches.")
      .options(options);
  plugin
      .add<wrong::Member<Right<"wrong/step_member">>>("wrong/step_member",
                                                      "Turns gradients after a resume.")
      .options(options);
  plugin.add<wrong::Reduces<Right<"wrong/reduces">>>("wrong/reduces", "Spoils late microbatches.")
      .options(options);
  plugin
      .add<wrong::After<Right<"wrong/after_optimizer_step">>>("wrong/after_optimizer_step",
                                                              "Halves weights after a resume.")
      .options(options);
  plugin
      .add<wrong::States<Right<"wrong/transform_state">>>("wrong/transform_state",
                                                          "Spoils a layer after a resume.")
      .options(options);
  plugin
      .add<wrong::Exports<Right<"wrong/export_transform">>>("wrong/export_transform",
                                                            "Leaves out a weight.")
      .options(options);
}
