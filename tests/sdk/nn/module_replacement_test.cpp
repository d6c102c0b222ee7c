// Replacing one module by another: calls, visits, wrappers and names continue to work; a
// replacement that would lose something is refused by name.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <titan/model.h>
#include <titan/nn/linear.h>

#include "tests/plugins/error_of.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using Words = std::vector<std::string>;

/// x · weight.
class Factor final : public Module {
 public:
  explicit Factor(double value) { add_parameter("weight", {1}, Init::constant(value)); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    return x * shared_parameter("weight")->value();
  }
};

/// gain · linear(factor(x)), with typed references to its children, as models have.
class FactorBlock final : public Module {
 public:
  FactorBlock()
      : factor_(add_module("factor", std::make_unique<Factor>(2))),
        linear_(add_module(
            "linear", std::make_unique<Linear>(3, 3, WeightLayout::column, Init::constant(1)))),
        gain_(add_parameter("gain", {1}, Init::constant(5))) {}
  Factor& factor() { return factor_; }
  Linear& linear() { return linear_; }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return linear_(factor_(x, batch), batch) * gain_.value();
  }

 private:
  Factor& factor_;
  Linear& linear_;
  Parameter& gain_;
};

/// Replaces a Factor: returns the negative of its result.
class NegativeFactor final : public Module {
 public:
  explicit NegativeFactor(Module& replaced, const std::string& name = "weight")
      : weight_(adopt_parameter(name, replaced.shared_parameter("weight"))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x * -weight_.value(); }

 private:
  Parameter& weight_;
};

/// Replaces a FactorBlock: one multiplication, and the original linear layer.
class FusedFactorBlock final : public Module {
 public:
  explicit FusedFactorBlock(Module& replaced)
      : factor_(adopt_parameter("factor.weight", replaced.shared_parameter("factor.weight"))),
        gain_(adopt_parameter("gain", replaced.shared_parameter("gain"))),
        linear_(adopt_module("linear", replaced.shared_module<Linear>("linear"))) {}

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return linear_(x * (factor_.value() * gain_.value()), batch);
  }

 private:
  Parameter& factor_;
  Parameter& gain_;
  Linear& linear_;
};

class NoParameters final : public Module {
 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
};

class TripledLinear final : public LinearKernel {
 public:
  explicit TripledLinear(std::unique_ptr<LinearKernel> inner) : inner_(std::move(inner)) {}
  at::Tensor matmul(const at::Tensor& x, Parameter& weight) override {
    return inner_->matmul(x, weight) * 3;
  }

 private:
  std::unique_ptr<LinearKernel> inner_;
};

Wrapper saying(Words& events, const std::string& name) {
  return [&events, name](const at::Tensor& x, const Batch& batch, const Next& next) {
    events.push_back(name);
    return next(x, batch);
  };
}

struct FactorPart {
  FactorPart() : part(make_layers()) {}
  static std::vector<Layer> make_layers() {
    std::vector<Layer> layers;
    layers.push_back({"layers.0", std::make_unique<FactorBlock>(), "layers.0"});
    return layers;
  }
  double run() {
    at::NoGradGuard no_grad;
    return part.forward(at::ones({1, 3}), Batch())[0][0].item<double>();
  }
  Words parameter_names() {
    Words names;
    for (const Parameter* parameter : part.parameters()) names.push_back(parameter->name());
    return names;
  }
  Words paths() {
    Words all;
    part.visit_modules([&](const std::string& path, Module&) { all.push_back(path); });
    return all;
  }
  FactorBlock& block() { return dynamic_cast<FactorBlock&>(*part.layers()[0].module); }

  ModelPart part;
};

TEST(ModuleReplacement, RunsInThePlaceThatTheParentKnows) {
  FactorPart model;
  const Words names = model.parameter_names();
  model.part.replace("layers.0.factor", std::make_unique<NegativeFactor>(model.block().factor()));
  EXPECT_EQ(model.parameter_names(), names);
  model.part.refresh();
  EXPECT_EQ(model.parameter_names(), names) << "named again";
  model.part.materialize(c10::kCPU, at::kFloat, 1);
  EXPECT_EQ(model.run(), -2 * 3 * 5);
  Module* found = nullptr;
  model.part.visit_modules([&](const std::string& path, Module& module) {
    if (path == "layers.0.factor") found = &module;
  });
  EXPECT_NE(dynamic_cast<NegativeFactor*>(found), nullptr);
}

TEST(ModuleReplacement, OfAWholeLayerKeepsTheModulesThatItTakesOver) {
  FactorPart model;
  model.block().linear().wrap_kernel("tripled", [](std::unique_ptr<LinearKernel> inner) {
    return std::make_unique<TripledLinear>(std::move(inner));
  });
  const size_t num_parameters = model.part.parameters().size();
  model.part.materialize(c10::kCPU, at::kFloat, 1);
  const double before = model.run();
  model.part.replace("layers.0", std::make_unique<FusedFactorBlock>(model.block()));
  EXPECT_EQ(model.run(), before);
  EXPECT_EQ(before, 3 * 2 * 3 * 5);
  EXPECT_EQ(model.paths(), (Words{"layers.0", "layers.0.linear"}));
  EXPECT_EQ(model.part.parameters().size(), num_parameters);
}

TEST(ModuleReplacement, KeepsWhatGoesAroundInItsOrder) {
  FactorPart model;
  Words events;
  model.block().factor().wrap(saying(events, "first"));
  model.block().wrap(saying(events, "layer"));
  auto replacement = std::make_unique<NegativeFactor>(model.block().factor());
  replacement->wrap(saying(events, "own"));
  model.part.replace("layers.0.factor", std::move(replacement));
  model.block().factor().wrap(saying(events, "last"));  // through the old reference
  model.part.materialize(c10::kCPU, at::kFloat, 1);
  model.run();
  EXPECT_EQ(events, (Words{"layer", "last", "first", "own"}));
}

TEST(ModuleReplacement, MayBeMadeDuringAVisit) {
  FactorPart model;
  Words seen;
  model.part.visit_modules([&](const std::string& path, Module& module) {
    seen.push_back(path);
    if (dynamic_cast<FactorBlock*>(&module))
      model.part.replace(path, std::make_unique<FusedFactorBlock>(module));
  });
  EXPECT_EQ(seen, Words{"layers.0"}) << "modules that were replaced are not visited";
  EXPECT_EQ(model.paths(), (Words{"layers.0", "layers.0.linear"}));
}

TEST(ModuleReplacement, CanBeReplacedItself) {
  FactorPart model;
  for (int i = 0; i < 2; ++i)
    model.part.replace("layers.0.factor", std::make_unique<NegativeFactor>(model.block().factor()));
  model.part.materialize(c10::kCPU, at::kFloat, 1);
  EXPECT_EQ(model.run(), -2 * 3 * 5);
}

TEST(ModuleReplacement, IsRefusedWhereParametersWouldChange) {
  FactorPart model;
  const auto refusal = [&](const std::string& path, std::unique_ptr<Module> module) {
    const Error error = error_of([&] { model.part.replace(path, std::move(module)); });
    EXPECT_EQ(error.kind(), ErrorKind::plugin);
    return std::string(error.what());
  };
  EXPECT_TRUE(holds(refusal("layers.0.factor", std::make_unique<NoParameters>()),
                    "the replacement of 'layers.0.factor' does not have its parameter "
                    "'layers.0.factor.weight'"));
  EXPECT_TRUE(holds(
      refusal("layers.0.factor", std::make_unique<NegativeFactor>(model.block().factor(), "scale")),
      "names the parameter 'layers.0.factor.weight' 'scale'"));
  auto with_more = std::make_unique<NegativeFactor>(model.block().factor());
  with_more->attach("more", std::make_unique<Factor>(1));
  EXPECT_TRUE(holds(refusal("layers.0.factor", std::move(with_more)),
                    "has an additional parameter, 'more.weight'"));
  EXPECT_TRUE(holds(refusal("layers.0.norm", std::make_unique<NoParameters>()),
                    "there is no module 'layers.0.norm' to replace"));
}

TEST(ModuleReplacement, MayBringWeightsOfItsOwnToAConverter) {
  FactorPart model;
  Words events;
  model.block().factor().wrap(saying(events, "around"));
  model.part.substitute("layers.0.factor", std::make_unique<Factor>(7));
  EXPECT_EQ(model.part.num_parameters(), 1 + 9 + 1) << "counted again";
  EXPECT_EQ(model.parameter_names(),
            (Words{"layers.0.gain", "layers.0.factor.weight", "layers.0.linear.weight"}));
  model.part.materialize(c10::kCPU, at::kFloat, 1);
  EXPECT_EQ(model.run(), 7 * 3 * 5);
  EXPECT_EQ(events, Words{"around"}) << "wrappers stay";
}

TEST(ModuleReplacement, ThatBringsWeightsIsRefusedWhereSomebodyComputes) {
  FactorPart model;
  model.block().linear().wrap_kernel("a test", [](std::unique_ptr<LinearKernel> inner) {
    return std::make_unique<TripledLinear>(std::move(inner));
  });
  EXPECT_TRUE(
      holds(error_of([&] {
              model.part.substitute("layers.0.linear", std::make_unique<Factor>(7));
            }).message(),
            "'layers.0.linear' cannot be replaced: 'layers.0.linear' is computed by a test"));
  EXPECT_TRUE(holds(error_of([&] {
                      model.part.substitute("layers.0.nothing", std::make_unique<Factor>(7));
                    }).message(),
                    "there is no module 'layers.0.nothing' to replace"));
}

TEST(ModuleReplacement, IsRefusedWhereSomebodyComputesOrGoesAround) {
  /// Adopts the parameters but none of the child modules.
  class Alone final : public Module {
   public:
    explicit Alone(Module& replaced) {
      for (const char* name : {"factor.weight", "linear.weight", "gain"})
        adopt_parameter(name, replaced.shared_parameter(name));
    }

   protected:
    at::Tensor forward(const at::Tensor& x, const Batch&) override { return x; }
  };
  const auto refusal = [](FactorPart& model) {
    return std::string(error_of([&] {
                         model.part.replace("layers.0", std::make_unique<Alone>(model.block()));
                       }).what());
  };
  FactorPart computed, wrapped, free;
  computed.block().linear().wrap_kernel("tripled", [](std::unique_ptr<LinearKernel> inner) {
    return std::make_unique<TripledLinear>(std::move(inner));
  });
  EXPECT_TRUE(holds(refusal(computed),
                    "'layers.0' cannot be replaced: 'layers.0.linear' is "
                    "computed by tripled around it, which would be lost"));
  Words events;
  wrapped.block().factor().wrap(saying(events, "around"));
  EXPECT_TRUE(holds(refusal(wrapped), "a wrapper runs around 'layers.0.factor'"));
  free.part.replace("layers.0", std::make_unique<Alone>(free.block()));
}

TEST(ModuleReplacement, LetsNobodyComputeInWhatIsGone) {
  FactorPart model;
  class OtherLinear final : public Module {
   public:
    explicit OtherLinear(Module& replaced)
        : weight_(adopt_parameter("weight", replaced.shared_parameter("weight"))) {}

   protected:
    at::Tensor forward(const at::Tensor& x, const Batch&) override {
      return x * weight_.value()[0][0];
    }

   private:
    Parameter& weight_;
  };
  Linear& linear = model.block().linear();
  model.block().replace_child("linear", std::make_unique<OtherLinear>(linear));
  const Error error = error_of([&] {
    linear.wrap_kernel("adapter", [](std::unique_ptr<LinearKernel> inner) { return inner; });
  });
  EXPECT_TRUE(holds(error.what(),
                    "adapter would compute in 'layers.0.linear', which another "
                    "module has replaced"));
}

}  // namespace
}  // namespace titan::nn
