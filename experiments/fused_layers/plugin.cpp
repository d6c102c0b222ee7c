// The pass: replaces norms by modules and the kernels of feed-forwards.
#include <memory>

#include <titan/nn/feed_forward.h>
#include <titan/nn/rms_norm.h>
#include <titan/plugin.h>
#include <titan/transform.h>

#include "fused.h"

namespace fused_layers {
namespace {

class FusedNorm final : public titan::nn::Module {
 public:
  explicit FusedNorm(const titan::nn::RmsNorm& replaced)
      : weight_(adopt_parameter("weight", replaced.shared_parameter("weight"))),
        eps_(replaced.eps()) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const titan::Batch&) override {
    return norm(x, weight_.value(), eps_);
  }

 private:
  titan::nn::Parameter& weight_;
  double eps_;
};

class FusedFeedForward final : public titan::nn::FeedForwardKernel {
 public:
  at::Tensor feed_forward(const at::Tensor& x, const titan::nn::FeedForwardWeights& w,
                          const titan::Batch&) override {
    return fused_layers::feed_forward(x, w.w1.value(), w.w2.value(), w.w3.value());
  }
};

class FusedLayers final : public titan::Converter {
 public:
  explicit FusedLayers(titan::TransformContext) {}
  titan::Phase phase() const override { return titan::Phase::compile; }

  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
      if (auto* norm = dynamic_cast<titan::nn::RmsNorm*>(&module))
        part.replace(path, std::make_unique<FusedNorm>(*norm));
      if (auto* feed_forward = dynamic_cast<titan::nn::FeedForward*>(&module))
        feed_forward->set_kernel("maintainers/fused_layers", std::make_unique<FusedFeedForward>());
    });
  }
};

}  // namespace
}  // namespace fused_layers

TITAN_PLUGIN(plugin) {
  plugin.add<fused_layers::FusedLayers>("maintainers/fused_layers",
                                        "Norms and feed-forwards as one autograd node each.");
}
