// Modules: wrappers, names, visits. Model parts: names are set once, tied parameters are counted
// once.
#include <titan/nn/module.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <titan/model.h>

#include "tests/plugins/error_of.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using Names = std::vector<std::string>;

/// x -> x · weight; remembers that it ran.
class Scale final : public Module {
 public:
  explicit Scale(Names* events = nullptr) : events_(events) {
    add_parameter("weight", {1}, Init::constant(2));
  }
  std::shared_ptr<Parameter> weight() const { return shared_parameter("weight"); }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override {
    if (events_) events_->push_back("layer");
    return x * weight()->value();
  }

 private:
  Names* events_;
};

class Pair final : public Module {
 public:
  Pair()
      : first_(add_module("first", std::make_unique<Scale>())),
        second_(add_module("second", std::make_unique<Scale>())) {
    add_parameter("gain.weight", {2, 3}, Init::constant(1));
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return second_(first_(x, batch), batch);
  }

 private:
  Scale& first_;
  Scale& second_;
};

/// Multiplies by a weight that another module owns.
class Borrower final : public Module {
 public:
  explicit Borrower(std::shared_ptr<Parameter> weight) : weight_(weight) {
    borrow_parameter(std::move(weight));
  }

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch&) override { return x * weight_->value(); }

 private:
  std::shared_ptr<Parameter> weight_;
};

Names parameter_names(Module& module) {
  Names names;
  module.visit_parameters([&](Parameter& p) { names.push_back(p.name()); });
  return names;
}

template <class... Modules>
std::vector<Layer> layers_of(std::pair<std::string, std::unique_ptr<Modules>>... named) {
  std::vector<Layer> layers;
  (layers.push_back({named.first, std::move(named.second), named.first}), ...);
  return layers;
}

TEST(Module, RunsTheLastWrapperOutermost) {
  Names events;
  Scale layer(&events);
  layer.set_names("layer");
  layer.weight()->materialize(c10::kCPU, at::kFloat, 1);
  for (const std::string name : {"first", "second", "third"})
    layer.wrap([&events, name](const at::Tensor& x, const Batch& batch, const Next& next) {
      events.push_back(name + " in");
      const at::Tensor out = next(x + 1, batch);
      events.push_back(name + " out");
      return out * 10;
    });
  const at::Tensor out = layer(at::ones({1}), Batch());
  EXPECT_EQ(events, (Names{"third in", "second in", "first in", "layer", "first out", "second out",
                           "third out"}));
  EXPECT_EQ(out.item<float>(), (1 + 3) * 2 * 1000);
}

TEST(Module, LetsAWrapperRunTheLayerAgainOrNotAtAll) {
  Names events;
  Scale layer(&events);
  layer.set_names("layer");
  layer.weight()->materialize(c10::kCPU, at::kFloat, 1);
  layer.wrap([](const at::Tensor& x, const Batch& batch, const Next& next) {
    return next(next(x, batch), batch);
  });
  EXPECT_EQ(layer(at::ones({1}), Batch()).item<float>(), 4);
  layer.wrap([](const at::Tensor& x, const Batch&, const Next&) { return x; });
  EXPECT_EQ(layer(at::ones({1}), Batch()).item<float>(), 1);
  EXPECT_EQ(events.size(), 2u);
}

TEST(Module, HandsAChangedBatchInwards) {
  class TokenCount final : public Module {
   protected:
    at::Tensor forward(const at::Tensor&, const Batch& batch) override {
      return at::ones({batch.tokens.size(1)});
    }
  } layer;
  layer.wrap([](const at::Tensor& x, const Batch& batch, const Next& next) {
    Batch half = batch;
    half.tokens = batch.tokens.narrow(1, 0, 2);
    return next(x, half);
  });
  EXPECT_EQ(layer(at::Tensor(), Batch{.tokens = at::ones({1, 4}, at::kLong)}).size(0), 2);
}

TEST(Module, NamesParametersByTheirPath) {
  Pair pair;
  pair.set_names("layers.3.mlp");
  EXPECT_EQ(parameter_names(pair), (Names{"layers.3.mlp.gain.weight", "layers.3.mlp.first.weight",
                                          "layers.3.mlp.second.weight"}));
  pair.set_names("");
  EXPECT_EQ(parameter_names(pair), (Names{"gain.weight", "first.weight", "second.weight"}));
}

TEST(Module, VisitsModulesWithTheirPaths) {
  Pair pair;
  Names paths;
  pair.visit_modules([&](const std::string& path, Module&) { paths.push_back(path); });
  EXPECT_EQ(paths, (Names{"", "first", "second"}));
  paths.clear();
  pair.visit_modules([&](const std::string& path, Module&) { paths.push_back(path); }, "layers.0");
  EXPECT_EQ(paths, (Names{"layers.0", "layers.0.first", "layers.0.second"}));
}

TEST(ModelPart, CountsATiedParameterOnceAndNamesItByItsOwner) {
  auto owner = std::make_unique<Scale>();
  auto borrower = std::make_unique<Borrower>(owner->weight());
  Parameter* weight = owner->weight().get();
  ModelPart part(layers_of(std::pair{std::string("tok_embeddings"), std::move(owner)},
                           std::pair{std::string("output"), std::move(borrower)}));
  ASSERT_EQ(part.parameters(), std::vector<Parameter*>{weight});
  EXPECT_EQ(weight->name(), "tok_embeddings.weight");
  EXPECT_EQ(part.num_parameters(), 1);

  int calls = 0;
  weight->on_gradient([&](Parameter&) { ++calls; });
  part.materialize(c10::kCPU, at::kFloat, 1);
  part.forward(at::ones({1}), Batch()).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(weight->grad().item<float>(), 4);  // d(w²)/dw at 2: both uses
  part.clear_gradients();
  EXPECT_FALSE(weight->grad().defined());
}

TEST(ModelPart, KeepsTheOwnersNameWhenTheBorrowerComesFirst) {
  auto owner = std::make_unique<Scale>();
  auto borrower = std::make_unique<Borrower>(owner->weight());
  ModelPart part(layers_of(std::pair{std::string("a"), std::move(borrower)},
                           std::pair{std::string("b"), std::move(owner)}));
  ASSERT_EQ(part.parameters().size(), 1u);
  EXPECT_EQ(part.parameters()[0]->name(), "b.weight");
}

TEST(ModelPart, RefusesTwoParametersOfOneName) {
  const Error error = error_of([] {
    ModelPart part(layers_of(std::pair{std::string("layers.0"), std::make_unique<Scale>()},
                             std::pair{std::string("layers.0"), std::make_unique<Scale>()}));
  });
  EXPECT_TRUE(holds(error.what(), "'layers.0.weight'"));
}

TEST(ModelPart, RunsItsLayersInOrder) {
  ModelPart part(layers_of(std::pair{std::string("a"), std::make_unique<Pair>()},
                           std::pair{std::string("b"), std::make_unique<Scale>()}));
  EXPECT_EQ(part.num_parameters(), 9);
  part.materialize(c10::kCPU, at::kFloat, 1);
  EXPECT_EQ(part.forward(at::ones({1}), Batch()).item<float>(), 8);
}

}  // namespace
}  // namespace titan::nn
