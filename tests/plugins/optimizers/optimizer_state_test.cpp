// States that an optimizer declares: when they are created, which are visited, and errors that must
// come before a step could be lost.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include "core/checkpoint/state.h"
#include "core/config/schema/job_config.h"
#include "core/train/optimizer/early_optimizer.h"
#include "core/train/optimizer/optimizer_set.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

std::vector<std::string> visited(StatefulOptimizer& optimizer) {
  std::vector<std::string> names;
  optimizer.visit_state([&](Parameter& p, const OptimizerState& state, const at::Tensor&) {
    names.push_back(p.name() + "/" + state.name());
  });
  return names;
}

TEST(OptimizerState, BeginsAsItWasDeclared) {
  Parameter p({2, 3}, nn::Init::constant(0));
  p.set_name("p");
  p.materialize(c10::kCPU, at::kBFloat16, 1);
  StatefulOptimizer optimizer;
  OptimizerState& like = optimizer.add_state("like", {&p});
  OptimizerState& wide = optimizer.add_state("wide", {&p}, {.dtype = at::kFloat});
  OptimizerState& count = optimizer.add_state("count", {&p}, {.is_number = true, .initial = 2.5});
  EXPECT_EQ(like[0].sizes(), (at::IntArrayRef{2, 3}));
  EXPECT_EQ(like[0].scalar_type(), at::kBFloat16);
  EXPECT_EQ(like[0].abs().max().item<float>(), 0);
  EXPECT_FALSE(like[0].requires_grad());
  EXPECT_EQ(wide[0].scalar_type(), at::kFloat);
  EXPECT_EQ(count[0].dim(), 0);
  EXPECT_EQ(count[0].scalar_type(), at::kFloat);
  EXPECT_EQ(count[0].item<float>(), 2.5f);
  wide[0].add_(1);
  EXPECT_EQ(wide[0].min().item<float>(), 1) << "the same tensor every time";
}

TEST(OptimizerState, OfItsOwnShapeIsSavedWhole) {
  Parameter p({4, 3}, nn::Init::constant(0));
  p.set_name("p");
  p.materialize(c10::kCPU, at::kFloat, 1);
  struct Whole final : Optimizer, StatefulOptimizer {
    void step(double) override {}
    double lr() const override { return 1; }
  } optimizer;
  OptimizerState& left = optimizer.add_state("left", {&p}, {.whole_shape = [](const Parameter& of) {
                                               return std::vector<int64_t>(2, of.global_shape()[0]);
                                             }});
  OptimizerState& like = optimizer.add_state("like", {&p});
  EXPECT_TRUE(left.is_whole());
  EXPECT_FALSE(like.is_whole());
  const std::vector<core::StateTensor> states = core::states_of(optimizer);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].name, "optim.left.p");
  EXPECT_EQ(states[0].shape, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(states[0].slice.sizes, states[0].shape);
  EXPECT_TRUE(states[0].is_whole);
  EXPECT_EQ(states[0].tensor.data_ptr(), left[0].data_ptr());
  EXPECT_FALSE(states[1].is_whole);
  left[0].resize_({3, 3});
  EXPECT_TRUE(holds(error_of([&] { visited(optimizer); }).what(),
                    "state 'left' of 'p' was declared with shape [4, 4] and type Float, but has "
                    "[3, 3] and Float now"));
}

TEST(OptimizerState, IsVisitedParameterAfterParameterInOrderOfDeclaration) {
  const auto a = parameter("a", {1}), b = parameter("b", {2, 3});
  StatefulOptimizer first, second, whole;
  first.add_state("one", {a.get(), b.get()});
  first.add_state("two", {b.get()});
  EXPECT_EQ(visited(first), (std::vector<std::string>{"a/one", "b/one", "b/two"}));
  const auto c = parameter("c", {4});
  second.add_state("one", {c.get()});
  whole.add_states_of(first);
  whole.add_states_of(second);
  EXPECT_EQ(visited(whole), (std::vector<std::string>{"a/one", "b/one", "b/two", "c/one"}));
}

TEST(OptimizerState, IsRefusedByNameWhenItCouldNotBeResumed) {
  const auto p = parameter("p", {1, 2});
  StatefulOptimizer optimizer;
  OptimizerState& momentum = optimizer.add_state("momentum", {p.get()});
  const Error twice = error_of([&] { optimizer.add_state("momentum", {p.get()}); });
  EXPECT_EQ(twice.kind(), ErrorKind::plugin);
  EXPECT_TRUE(holds(twice.what(), "declares its state 'momentum' of 'p' twice"));
  for (const char* name : {"", "a.b"})
    EXPECT_TRUE(holds(error_of([&] { optimizer.add_state(name, {p.get()}); }).what(),
                      "cannot be called '" + std::string(name) + "'"));
  optimizer.seal_states();
  EXPECT_TRUE(holds(error_of([&] { optimizer.add_state("late", {p.get()}); }).what(),
                    "declares its state 'late' after its construction"));
  momentum[0].resize_({3});
  EXPECT_TRUE(holds(error_of([&] { visited(optimizer); }).what(),
                    "state 'momentum' of 'p' was declared with shape [2] and type Float, but has "
                    "[3] and Float now"));
}

/// Two parameters, one of them in its own group.
core::JobConfig grouped(std::string_view optimizer) {
  core::JobConfig config;
  config.optimizer = {"optimizer", std::string(optimizer), Value::map(), {}};
  config.optimizer_groups = {{"b", {"b"}, config.optimizer}};
  return config;
}

TEST(OptimizerState, OfGroupsAndOfEarlyOptimizersIsThatOfAll) {
  const auto a = parameter("a", {1}), b = parameter("b", {2, 3});
  const core::JobConfig config = grouped("AdamW");
  const OptimizerContext context{{a.get(), b.get()}};
  const auto set = core::make_optimizer(config, plugin_registry(), context);
  core::EarlyOptimizer early(context.parameters,
                             core::make_single_optimizers(config, plugin_registry(), context));
  const std::vector<std::string> expected = {"a/step", "a/exp_avg", "a/exp_avg_sq",
                                             "b/step", "b/exp_avg", "b/exp_avg_sq"};
  EXPECT_EQ(visited(dynamic_cast<StatefulOptimizer&>(*set)), expected);
  EXPECT_EQ(visited(early), expected);
}

TEST(OptimizerState, IsCompleteWhenTheHostHasMadeTheOptimizer) {
  const auto a = parameter("a", {1});
  core::JobConfig config = grouped("Lion");
  config.optimizer_groups.clear();
  const auto lion = core::make_optimizer(config, plugin_registry(), {{a.get()}});
  const Error late =
      error_of([&] { dynamic_cast<StatefulOptimizer&>(*lion).add_state("late", {a.get()}); });
  EXPECT_TRUE(holds(late.what(), "call add_state in the constructor"));
}

}  // namespace
}  // namespace titan
