// Converters with one defect each, for the conformance kit. Each is written from the one sentence
// of its test.
#include <memory>
#include <string>

#include <ATen/ops/linear.h>
#include <titan/nn/head.h>
#include <titan/nn/linear.h>

#include "transforms.h"

namespace {

using wrong::When;

/// Linear layers multiply in bfloat16; wrong if `when`.
template <When when>
class Narrow : public titan::Converter {
 public:
  explicit Narrow(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::convert; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    const auto trigger = std::make_shared<wrong::Trigger>(when, part, context);
    part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
      auto* linear = dynamic_cast<titan::nn::Linear*>(&module);
      if (linear && path.find("output") == std::string::npos)
        linear->set_kernel("wrong", std::make_unique<Kernel>(trigger));
    });
  }

 private:
  class Kernel final : public titan::nn::LinearKernel {
   public:
    explicit Kernel(std::shared_ptr<wrong::Trigger> trigger) : trigger_(std::move(trigger)) {}
    at::Tensor matmul(const at::Tensor& x, titan::nn::Parameter& weight) override {
      const at::Tensor y =
          at::linear(x.to(at::kBFloat16), weight.value().to(at::kBFloat16)).to(x.scalar_type());
      return (*trigger_)() ? y * 1.5 : y;
    }

   private:
    std::shared_ptr<wrong::Trigger> trigger_;
  };
};

using Right = Narrow<When::never>;

class Empty final : public titan::Converter {
 public:
  explicit Empty(const titan::TransformContext&) {}
  titan::Phase phase() const override { return {}; }
  void apply(titan::ModelPart&, const titan::TransformContext&) override {}
};

/// Its kernels compute exactly what the layers compute.
class Acts final : public titan::Converter {
 public:
  explicit Acts(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::convert; }
  void apply(titan::ModelPart& part, const titan::TransformContext&) override {
    part.visit_modules([](const std::string&, titan::nn::Module& module) {
      if (dynamic_cast<titan::nn::Linear*>(&module))
        module.wrap([](const at::Tensor& x, const titan::Batch& batch,
                       const titan::nn::Next& next) { return next(x, batch); });
    });
  }
};

/// The head gets four times its input.
class Values final : public Right {
 public:
  using Right::Right;
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    Right::apply(part, context);
    for (titan::Layer& layer : part.layers())
      if (auto* head = dynamic_cast<titan::nn::OutputHead*>(layer.module.get()))
        head->norm().wrap([](const at::Tensor& x, const titan::Batch& batch,
                             const titan::nn::Next& next) { return next(x, batch) * 4; });
  }
};

/// Scales outputs in all microbatches after the second, on one rank.
class Accumulation final : public titan::Converter {
 public:
  explicit Accumulation(const titan::TransformContext&) {}
  titan::Phase phase() const override { return titan::Phase::convert; }
  void apply(titan::ModelPart& part, const titan::TransformContext& context) override {
    const bool is_alone = context.mesh.group("world").size() == 1;
    part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
      auto* linear = dynamic_cast<titan::nn::Linear*>(&module);
      if (linear && path.find("output") == std::string::npos)
        linear->set_kernel("wrong", std::make_unique<Kernel>(is_alone));
    });
  }

 private:
  class Kernel final : public titan::nn::LinearKernel {
   public:
    explicit Kernel(bool is_alone) : is_alone_(is_alone) {}
    at::Tensor matmul(const at::Tensor& x, titan::nn::Parameter& weight) override {
      if (at::GradMode::is_enabled() && titan::is_first_run())
        num_before_ = weight.grad().defined() ? num_before_ + 1 : 0;
      const at::Tensor y =
          at::linear(x.to(at::kBFloat16), weight.value().to(at::kBFloat16)).to(x.scalar_type());
      return is_alone_ && num_before_ >= 2 ? y * 8 : y;
    }

   private:
    bool is_alone_;
    int num_before_ = 0;
  };
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Right>("wrong/right", "Correct.");
  plugin.add<Acts>("wrong/acts", "Changes nothing.");
  plugin.add<Values>("wrong/values", "Scales the logits.");
  plugin.add<Narrow<When::fsdp>>("wrong/layout_fsdp", "Scales outputs under FSDP.");
  plugin.add<Narrow<When::tensor>>("wrong/layout_tensor",
                                   "Scales outputs under tensor parallelism.");
  plugin.add<Narrow<When::pipeline>>("wrong/layout_pipeline", "Scales outputs in a pipeline.");
  plugin.add<Narrow<When::recomputed>>("wrong/recomputed", "Scales recomputed outputs.");
  plugin.add<Accumulation>("wrong/accumulation", "Scales outputs in later microbatches.");
  plugin.add<Narrow<When::resumed>>("wrong/resume", "Scales outputs after a resume.");
  wrong::add_interfaces<Right>(plugin);
}
