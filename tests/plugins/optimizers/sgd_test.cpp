// SGD: closed forms, state, parameters without gradient. tests/referee/adamw_referee.py compares
// many steps.
#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan {
namespace {

using namespace titan::testing;

TEST(Sgd, FollowsItsFormulas) {
  // two steps on gradient 1 from weight 2, lr 0.5 · 0.2
  const auto after_two = [](std::initializer_list<Value::Member> options) {
    const auto p = parameter("w", {2});
    const auto sgd = optimizer("SGD", options, {p.get()});
    for (int step = 0; step < 2; ++step) {
      set_gradient(*p, {1});
      sgd->step(0.2);
    }
    EXPECT_EQ(values_of(p->grad())[0], 1);
    EXPECT_EQ(sgd->lr(), 0.5);
    return values_of(*p)[0];
  };
  EXPECT_NEAR(after_two({{"lr", 0.5}}), 2 - 0.2, 1e-6);
  EXPECT_NEAR(after_two({{"lr", 0.5}, {"momentum", 0.5}}), 2 - 0.1 - 0.15, 1e-6);
  EXPECT_NEAR(after_two({{"lr", 0.5}, {"momentum", 0.5}, {"nesterov", true}}), 2 - 0.15 - 0.175,
              1e-6);
  EXPECT_NEAR(after_two({{"lr", 0.5}, {"weight_decay", 0.1}}), 1.88 - 0.1 * (1 + 0.188), 1e-6);
  // directions 1.2 and 1.182, momenta 1.2 and 1.782
  EXPECT_NEAR(
      after_two({{"lr", 0.5}, {"momentum", 0.5}, {"nesterov", true}, {"weight_decay", 0.1}}),
      2 - 0.1 * (1.2 + 0.6) - 0.1 * (1.182 + 0.891), 1e-6);
}

TEST(Sgd, SkipsParametersWithoutGradient) {
  const auto p = parameter("p", {1}), q = parameter("q", {3});
  const auto sgd =
      optimizer("SGD", {{"lr", 0.5}, {"momentum", 0.9}, {"weight_decay", 0.1}}, {p.get(), q.get()});
  set_gradient(*p, {1});
  sgd->step(1);
  EXPECT_NE(values_of(*p)[0], 1);
  EXPECT_EQ(values_of(*q)[0], 3);
}

TEST(Sgd, HasStateOnlyWithMomentum) {
  const auto p = parameter("p", {1, 2}), q = parameter("q", {3});
  EXPECT_TRUE(state_of(*optimizer("SGD", {}, {p.get(), q.get()})).empty());
  const auto state = state_of(*optimizer("SGD", {{"momentum", 0.9}}, {p.get(), q.get()}));
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(values_of(state.at("p/momentum_buffer")), (std::vector<float>{0, 0}));
  EXPECT_EQ(state.at("q/momentum_buffer").sizes(), q->shard().sizes());
}

TEST(Sgd, ResumesExactlyFromItsState) {
  EXPECT_TRUE(resumes_exactly("SGD", {{"lr", 0.05}}));
  EXPECT_TRUE(resumes_exactly("SGD", {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.1}}));
  EXPECT_TRUE(resumes_exactly("SGD", {{"lr", 0.05}, {"momentum", 0.9}, {"nesterov", true}}));
}

TEST(Sgd, RefusesToLookAheadWithoutMomentum) {
  const Error error = error_of([] { optimizer("SGD", {{"nesterov", true}}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), "optimizer.nesterov needs optimizer.momentum > 0"));
}

}  // namespace
}  // namespace titan
