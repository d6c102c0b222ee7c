// Converter maintainers/ternary: linear layers compute with weights of three values and inputs of 8
// bits; the stored weights stay unchanged.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/linear.h>
#include <titan/log.h>
#include <titan/error.h>
#include <titan/name_pattern.h>
#include <titan/nn/linear.h>
#include <titan/plugin.h>
#include <titan/transform.h>

#include "quantize.h"
#include "weight_means.h"

namespace ternary {
namespace {

constexpr const char* kName = "maintainers/ternary";

struct Options {
  std::vector<std::string> layers = {"layers.*"};
  bool quantize_inputs = true;
};

class TernaryLinear final : public titan::nn::LinearKernel {
 public:
  TernaryLinear(std::shared_ptr<WeightMeans> means, titan::nn::Parameter& weight, const titan::dist::Mesh& mesh,
                bool quantizes_inputs)
      : means_(std::move(means)), mean_(means_->add(weight)), mesh_(mesh), quantizes_inputs_(quantizes_inputs) {}

  at::Tensor matmul(const at::Tensor& x, titan::nn::Parameter& weight) override {
    const at::Tensor input = quantizes_inputs_ ? eight_bits(x, row_maximum(x.detach(), weight)) : x;
    return at::linear(input, ternary(weight.value(), means_->value(*mean_)));
  }

 private:
  /// Over the whole row: of a weight whose columns are sharded, each rank has a part of x.
  at::Tensor row_maximum(const at::Tensor& x, const titan::nn::Parameter& weight) const {
    at::Tensor maximum = x.abs().amax(-1, /*keepdim=*/true);
    for (const titan::nn::Sharding& sharding : weight.shardings())
      if (sharding.dim == 1) mesh_.group(sharding.group).all_reduce(maximum, titan::dist::Reduce::max).wait();
    return maximum;
  }

  std::shared_ptr<WeightMeans> means_;
  std::shared_ptr<WeightMeans::Mean> mean_;
  titan::dist::Mesh mesh_;
  bool quantizes_inputs_;
};

class Ternary final : public titan::Converter, public titan::AfterOptimizerStep {
 public:
  Ternary(const Options& options, titan::TransformContext context)
      : options_(options), means_(std::make_shared<WeightMeans>(context.mesh, context.device.device())) {}

  titan::Phase phase() const override { return titan::Phase::convert; }

  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    int64_t count = 0;
    part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
      auto* linear = dynamic_cast<titan::nn::Linear*>(&module);
      if (!linear || !titan::matches_any(path, options_.layers)) return;
      linear->set_kernel(kName, std::make_unique<TernaryLinear>(means_, linear->weight(), context.mesh,
                                                                options_.quantize_inputs));
      ++count;
    });
    TITAN_CHECK(count > 0, config, "converter.", kName, ".layers matches no linear layer");
    if (context.mesh.rank() == 0) titan::log::info(titan::detail::concat(kName, " converts ", count, " linear layers"));
  }

  void after_optimizer_step() override { means_->update(); }

 private:
  Options options_;
  std::shared_ptr<WeightMeans> means_;
};

}  // namespace
}  // namespace ternary

TITAN_PLUGIN(plugin) {
  using ternary::Options;
  plugin.add<ternary::Ternary>("maintainers/ternary", "Linear layers compute with weights of three values.")
      .option("layers", &Options::layers, "Patterns of the paths of linear layers")
      .option("quantize_inputs", &Options::quantize_inputs, "Round the inputs of these layers to 8 bits");
}
