// Converter @FULL_NAME@. As generated, linear layers multiply in bfloat16 and keep the dtype of their weights.
// Select it with [model] converters = ["@FULL_NAME@"]. [converter."@FULL_NAME@"] holds its options.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/linear.h>

#include <titan/nn/linear.h>
#include <titan/plugin.h>
#include <titan/transform.h>

namespace {

struct @CLASS@Options {
  std::vector<std::string> skip = {"output"};  // skips layers whose name contains one of these
};

/// Replaces the product of a linear layer. Differentiable because all its operations are.
class Kernel final : public titan::nn::LinearKernel {
 public:
  at::Tensor matmul(const at::Tensor& x, titan::nn::Parameter& weight) override {
    return at::linear(x.to(at::kBFloat16), weight.value().to(at::kBFloat16)).to(x.scalar_type());
  }
};

class @CLASS@ final : public titan::Converter {
 public:
  @CLASS@(const @CLASS@Options& options, titan::TransformContext) : options_(options) {}

  titan::Phase phase() const override { return titan::Phase::convert; }

  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    part.visit_modules([this](const std::string& path, titan::nn::Module& module) {
      auto* linear = dynamic_cast<titan::nn::Linear*>(&module);
      if (linear && !is_skipped(path)) linear->set_kernel("@FULL_NAME@", std::make_unique<Kernel>());
    });
  }

 private:
  bool is_skipped(const std::string& path) const {
    return std::any_of(options_.skip.begin(), options_.skip.end(),
                       [&](const std::string& part) { return path.find(part) != std::string::npos; });
  }

  @CLASS@Options options_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "Linear layers multiply in bfloat16.")
      .option("skip", &@CLASS@Options::skip, "Skips layers whose name contains one of these");
}
