// AdamW and Adam in every implementation: closed forms, state, parameters without gradient.
// tests/referee/adamw_referee.py compares many steps.
#include <cmath>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

const char* const kImplementations[] = {"for-loop", "foreach", "fused"};

TEST(AdamW, FirstStepIsTheSignOfTheGradientTimesTheLearningRate) {
  for (const char* implementation : kImplementations) {
    const auto p = parameter("w", {1, -2, 3, 4});
    const auto adamw = optimizer(
        "AdamW",
        {{"lr", 0.5}, {"eps", 1e-3}, {"weight_decay", 0.0}, {"implementation", implementation}},
        {p.get()});
    set_gradient(*p, {10, -0.25f, 0, 1e-3f});
    adamw->step(0.2);
    const float expected[] = {1 - 0.1f * 10 / (10 + 1e-3f), -2 + 0.1f * 0.25f / (0.25f + 1e-3f), 3,
                              4 - 0.05f};
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(values_of(*p)[i], expected[i], 1e-6) << implementation;
    EXPECT_EQ(adamw->lr(), 0.5);
  }
}

TEST(AdamW, DecaysWeightsByThemselvesAndAdamThroughTheGradient) {
  for (const char* implementation : kImplementations) {
    const auto p = parameter("w", {1, -2}), q = parameter("w", {1, -2});
    const auto adamw =
        optimizer("AdamW", {{"lr", 0.1}, {"weight_decay", 0.5}, {"implementation", implementation}},
                  {p.get()});
    const auto adam =
        optimizer("Adam", {{"lr", 0.1}, {"weight_decay", 0.5}, {"implementation", implementation}},
                  {q.get()});
    for (int step = 0; step < 3; ++step) {
      set_gradient(*p, {0, 0});
      adamw->step(1);
    }
    EXPECT_NEAR(values_of(*p)[0], std::pow(0.95, 3), 1e-6) << implementation;
    EXPECT_NEAR(values_of(*p)[1], -2 * std::pow(0.95, 3), 1e-6) << implementation;
    set_gradient(*q, {0, 0});
    adam->step(1);
    EXPECT_NEAR(values_of(*q)[0], 0.9, 1e-6)
        << implementation;  // the decay acts as the gradient, of which only the sign matters
    EXPECT_NEAR(values_of(*q)[1], -1.9, 1e-6) << implementation;
  }
}

TEST(AdamW, SkipsParametersWithoutGradient) {
  for (const char* implementation : kImplementations) {
    const auto p = parameter("p", {1, 2}), q = parameter("q", {3, 4}),
               late = parameter("q", {3, 4});
    const auto both = optimizer("AdamW", {{"implementation", implementation}}, {p.get(), q.get()});
    for (int step = 0; step < 2; ++step) {
      set_gradient(*p, {1, 1});
      both->step(1);
    }
    EXPECT_EQ(values_of(*q), (std::vector<float>{3, 4})) << implementation;
    EXPECT_EQ(state_of(*both).at("p/step").item<float>(), 2);
    EXPECT_EQ(state_of(*both).at("q/step").item<float>(), 0);

    // its first gradient is its step 1, independent of the other parameters' steps
    const auto alone = optimizer("AdamW", {{"implementation", implementation}}, {late.get()});
    set_gradient(*p, {1, 1});
    set_gradient(*q, {0.5f, -2});
    set_gradient(*late, {0.5f, -2});
    both->step(1);
    alone->step(1);
    EXPECT_EQ(values_of(*q), values_of(*late)) << implementation;
  }
}

TEST(AdamW, DoesNothingWithoutAnyGradient) {
  const auto p = parameter("p", {1, 2});
  optimizer("AdamW", {}, {p.get()})->step(1);
  EXPECT_EQ(values_of(*p), (std::vector<float>{1, 2}));
}

TEST(AdamW, VisitsItsStateInOrderWithTheShapesOfTheShards) {
  const auto p = parameter("p", {1, 2}), q = parameter("q", {3, 4, 5});
  const auto adamw = optimizer("AdamW", {}, {p.get(), q.get()});
  set_gradient(*p, {2, -4});
  adamw->step(1);
  std::vector<std::string> names;
  dynamic_cast<StatefulOptimizer&>(*adamw).visit_state(
      [&](Parameter& parameter, const OptimizerState& declared, const at::Tensor& state) {
        names.push_back(parameter.name() + "/" + declared.name());
        if (declared.name() == "step")
          EXPECT_EQ(state.dim(), 0);
        else
          EXPECT_EQ(state.sizes(), parameter.shard().sizes());
        EXPECT_FALSE(state.requires_grad());
      });
  EXPECT_EQ(names, (std::vector<std::string>{"p/step", "p/exp_avg", "p/exp_avg_sq", "q/step",
                                             "q/exp_avg", "q/exp_avg_sq"}));
  const auto state = state_of(*adamw);
  EXPECT_NEAR(values_of(state.at("p/exp_avg"))[1], 0.1 * -4, 1e-6);
  EXPECT_NEAR(values_of(state.at("p/exp_avg_sq"))[1], 0.05 * 16, 1e-6);
}

TEST(AdamW, ResumesExactlyFromItsState) {
  for (const char* name : {"AdamW", "Adam"})
    for (const char* implementation : kImplementations)
      EXPECT_TRUE(resumes_exactly(name, {{"lr", 0.05}, {"implementation", implementation}}))
          << name << " " << implementation;
}

/// A matrix of 64 values in `dtype`, and made-up gradients for it.
std::unique_ptr<Parameter> matrix(at::ScalarType dtype) {
  auto p = std::make_unique<Parameter>(std::vector<int64_t>{8, 8}, nn::Init::normal(0, 1));
  p->set_name("w");
  p->materialize(c10::kCPU, dtype, 1);
  return p;
}
at::Tensor made_up_gradient(int step) {
  return at::sin(at::arange(64).to(at::kFloat) * (1.3 + 0.2 * step)).view({8, 8});
}

TEST(AdamW, KeepsItsMomentsInTheTypeThatIsAskedFor) {
  const std::pair<const char*, at::ScalarType> kStateDtypes[] = {
      {"as_stored", at::kDouble}, {"bfloat16", at::kBFloat16}, {"float32", at::kFloat}};
  for (const char* implementation : kImplementations)
    for (const auto& [word, dtype] : kStateDtypes) {
      const auto p = matrix(at::kDouble);
      const auto adamw = optimizer(
          "AdamW", {{"state_dtype", word}, {"implementation", implementation}}, {p.get()});
      p->shard().mutable_grad() = made_up_gradient(0).to(at::kDouble);
      adamw->step(1);
      const auto state = state_of(*adamw);
      EXPECT_EQ(state.at("w/exp_avg").scalar_type(), dtype) << word;
      EXPECT_EQ(state.at("w/exp_avg_sq").scalar_type(), dtype) << word;
      EXPECT_EQ(state.at("w/step").scalar_type(), at::kFloat);
    }
}

TEST(AdamW, ComputesInFloat32WhereWeightsAndMomentsDiffer) {
  for (const char* implementation : kImplementations) {
    const auto narrow = matrix(at::kBFloat16), wide = matrix(at::kFloat);
    at::NoGradGuard no_grad;
    wide->shard().detach().copy_(narrow->shard());
    const auto mixed = optimizer(
        "AdamW", {{"lr", 0.01}, {"state_dtype", "float32"}, {"implementation", implementation}},
        {narrow.get()});
    const auto plain =
        optimizer("AdamW", {{"lr", 0.01}, {"implementation", implementation}}, {wide.get()});
    for (int step = 0; step < 5; ++step) {
      narrow->shard().mutable_grad() = made_up_gradient(step).to(at::kBFloat16);
      wide->shard().mutable_grad() = narrow->grad().to(at::kFloat);
      mixed->step(1);
      plain->step(1);
      // the weights are rounded once, and the wide copy continues from the rounded ones
      EXPECT_TRUE(at::equal(narrow->shard(), wide->shard().to(at::kBFloat16))) << implementation;
      wide->shard().detach().copy_(narrow->shard());
    }
    const auto found = state_of(*mixed), expected = state_of(*plain);
    for (const char* name : {"w/exp_avg", "w/exp_avg_sq"})
      EXPECT_TRUE(at::equal(found.at(name), expected.at(name))) << implementation << " " << name;
  }
}

TEST(AdamW, AllocatesOnTheMetaDeviceWhatItWouldElsewhere) {
  for (const char* implementation : kImplementations)
    for (const char* state_dtype : {"as_stored", "bfloat16"}) {
      Parameter p({4, 3}, nn::Init::constant(0));
      p.set_name("w");
      p.materialize(c10::kMeta, at::kFloat, 1);
      const auto adamw = optimizer(
          "AdamW", {{"implementation", implementation}, {"state_dtype", state_dtype}}, {&p});
      p.shard().mutable_grad() = at::empty_like(p.shard().detach());
      adamw->step(1);
      const auto state = state_of(*adamw);
      EXPECT_TRUE(state.at("w/exp_avg").is_meta());
      EXPECT_EQ(state.at("w/exp_avg").sizes(), p.shard().sizes());
    }
}

TEST(AdamW, LeavesTheGradientAsItWas) {
  for (const char* name : {"AdamW", "Adam"})
    for (const char* implementation : kImplementations) {
      const auto p = parameter("p", {1, 2});
      set_gradient(*p, {0.5f, -3});
      optimizer(name, {{"implementation", implementation}}, {p.get()})->step(1);
      EXPECT_EQ(values_of(p->grad()), (std::vector<float>{0.5f, -3}))
          << name << " " << implementation;
    }
}

}  // namespace
}  // namespace titan
