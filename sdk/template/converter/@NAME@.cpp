// Converter @FULL_NAME@. As generated it lets linear layers multiply in bfloat16 while their weights stay as they are.
// Select it with [model] converters = ["@FULL_NAME@"]; its options stand in [converter."@FULL_NAME@"].
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
  std::vector<std::string> skip = {"output"};  // layers whose name contains one of these are left alone
};

/// Computes what the layer did, another way. Differentiable because it is made of differentiable operations.
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
      .option("skip", &@CLASS@Options::skip, "Layers left alone, by a part of their name");
}
