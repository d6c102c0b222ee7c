// Lion against the paper's algorithm computed element by element in double.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "lion.h"

namespace lion {
namespace {

constexpr int kSize = 6;

double gradient_at(int step, int element) {
  return std::sin(1.7 * step + 0.9 * element) + 0.05 * element;
}

class LionTest : public ::testing::Test {
 protected:
  LionTest() : parameter_({kSize}, titan::nn::Init::normal(0, 1)) {
    parameter_.set_name("weight");
    parameter_.materialize(at::kCPU, at::kFloat, /*seed=*/7);
    for (int i = 0; i < kSize; ++i) weights_.push_back(parameter_.shard()[i].item<double>());
  }

  void set_gradient(int step) {
    std::vector<float> values;
    for (int i = 0; i < kSize; ++i) values.push_back(static_cast<float>(gradient_at(step, i)));
    parameter_.value().mutable_grad() = at::tensor(values);
  }

  /// One step of the paper's algorithm on weights_ and momentum_.
  void reference_step(const LionOptions& o, int step, double lr) {
    for (int i = 0; i < kSize; ++i) {
      const double g = static_cast<float>(gradient_at(step, i));
      const double c = o.beta1 * momentum_[i] + (1 - o.beta1) * g;
      weights_[i] -= lr * ((c > 0) - (c < 0) + o.weight_decay * weights_[i]);
      momentum_[i] = o.beta2 * momentum_[i] + (1 - o.beta2) * g;
    }
  }

  titan::Parameter parameter_;
  std::vector<double> weights_;
  std::vector<double> momentum_ = std::vector<double>(kSize, 0.0);
};

TEST_F(LionTest, FollowsThePaperStepByStep) {
  const LionOptions options{.lr = 0.01, .weight_decay = 0.5};
  Lion lion(options, {{&parameter_}});
  for (int step = 1; step <= 20; ++step) {
    set_gradient(step);
    const double factor = 1.0 / step;
    lion.step(factor);
    reference_step(options, step, options.lr * factor);
    for (int i = 0; i < kSize; ++i)
      ASSERT_NEAR(parameter_.shard()[i].item<double>(), weights_[i], 2e-6) << step;
  }
}

TEST_F(LionTest, ShowsItsMomentumAsTheOnlyState) {
  const LionOptions options;
  Lion lion(options, {{&parameter_}});
  std::vector<std::string> names;
  const auto list = [&](titan::Parameter& parameter, std::string_view name,
                        const at::Tensor& state) {
    names.push_back(parameter.name() + " " + std::string(name));
    ASSERT_EQ(state.numel(), kSize);
    for (int i = 0; i < kSize; ++i) EXPECT_NEAR(state[i].item<double>(), momentum_[i], 1e-7);
  };
  lion.visit_state(list);  // zeros, before it has had a gradient: there is where to load it
  EXPECT_EQ(names, std::vector<std::string>{"weight exp_avg"});
  names.clear();
  set_gradient(1);
  lion.step(1);
  reference_step(options, 1, options.lr);
  lion.visit_state(list);
  EXPECT_EQ(names, std::vector<std::string>{"weight exp_avg"});
}

TEST_F(LionTest, LeavesAParameterWithoutAGradientAlone) {
  Lion lion(LionOptions{}, {{&parameter_}});
  lion.step(1);
  for (int i = 0; i < kSize; ++i) EXPECT_EQ(parameter_.shard()[i].item<double>(), weights_[i]);
}

}  // namespace
}  // namespace lion
