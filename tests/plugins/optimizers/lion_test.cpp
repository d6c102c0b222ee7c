// Lion: closed forms, state, parameters without gradient. tests/referee/optimizer_referee.py
// compares many steps.
#include <gtest/gtest.h>

#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

TEST(Lion, MovesEveryWeightByTheLearningRate) {
  const auto p = parameter("w", {1, -2, 3});
  const auto lion = optimizer("Lion", {{"lr", 0.5}, {"weight_decay", 0.0}}, {p.get()});
  set_gradient(*p, {10, -0.001f, 0});
  lion->step(0.2);
  EXPECT_EQ(values_of(*p), (std::vector<float>{0.9f, -1.9f, 3}));
  EXPECT_EQ(lion->lr(), 0.5);
}

TEST(Lion, FollowsTheRunningGradientAndDecaysByItself) {
  // after gradient 1 the momentum is 0.5; a gradient of -0.4 keeps the direction positive
  const auto p = parameter("w", {2});
  const auto lion = optimizer(
      "Lion", {{"lr", 0.1}, {"beta1", 0.5}, {"beta2", 0.5}, {"weight_decay", 1.0}}, {p.get()});
  set_gradient(*p, {1});
  lion->step(1);
  EXPECT_NEAR(values_of(*p)[0], 2 * 0.9 - 0.1, 1e-6);
  set_gradient(*p, {-0.4f});
  lion->step(1);
  EXPECT_NEAR(values_of(*p)[0], 1.7 * 0.9 - 0.1, 1e-6);
  EXPECT_NEAR(values_of(state_of(*lion).at("w/exp_avg"))[0], 0.05, 1e-6);
}

TEST(Lion, ForgetsByBeta2AndTurnsByBeta1) {
  const auto p = parameter("w", {2});
  const auto lion = optimizer(
      "Lion", {{"lr", 0.1}, {"beta1", 0.9}, {"beta2", 0.5}, {"weight_decay", 0.0}}, {p.get()});
  set_gradient(*p, {1});
  lion->step(1);
  EXPECT_NEAR(values_of(state_of(*lion).at("w/exp_avg"))[0], 0.5, 1e-6);
  // 0.9 * 0.5 - 0.1 * 4 is above zero, 0.5 * 0.5 - 0.5 * 4 below
  set_gradient(*p, {-4});
  lion->step(1);
  EXPECT_NEAR(values_of(*p)[0], 2 - 0.1 - 0.1, 1e-6);
  EXPECT_NEAR(values_of(state_of(*lion).at("w/exp_avg"))[0], -1.75, 1e-6);
}

TEST(Lion, SkipsWhatHasNoGradient) {
  const auto p = parameter("p", {1}), q = parameter("q", {3});
  const auto lion = optimizer("Lion", {}, {p.get(), q.get()});
  set_gradient(*p, {1});
  lion->step(1);
  EXPECT_NE(values_of(*p)[0], 1);
  EXPECT_EQ(values_of(*q)[0], 3);
  EXPECT_EQ(state_of(*lion).count("q/exp_avg"), 1u);
}

TEST(Lion, ResumesExactlyFromItsState) {
  EXPECT_TRUE(resumes_exactly("Lion", {{"lr", 0.05}, {"weight_decay", 0.1}}));
}

}  // namespace
}  // namespace titan
