#include "core/train/optimizer/early_optimizer.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace titan::core {
namespace {

/// Records the factors of its steps.
class WritingOptimizer final : public Optimizer {
 public:
  explicit WritingOptimizer(std::vector<double>& factors) : factors_(factors) {}
  void step(double lr_factor) override { factors_.push_back(lr_factor); }
  double lr() const override { return 1; }

 private:
  std::vector<double>& factors_;
};

TEST(EarlyOptimizer, StepsWhereAGradientIsCompleteAndFreesIt) {
  std::vector<std::unique_ptr<Parameter>> owned;
  std::vector<Parameter*> parameters;
  for (const char* name : {"a", "b"}) {
    owned.push_back(std::make_unique<Parameter>(std::vector<int64_t>{2}, nn::Init::constant(0)));
    owned.back()->set_name(name);
    owned.back()->materialize(c10::kCPU, at::kFloat, 1);
    owned.back()->shard().mutable_grad() = at::ones({2});
    parameters.push_back(owned.back().get());
  }
  std::vector<std::vector<double>> factors(2);
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (auto& of_parameter : factors)
    optimizers.push_back(std::make_unique<WritingOptimizer>(of_parameter));
  EarlyOptimizer early(parameters, std::move(optimizers));

  early.start_step(0.5);
  parameters[1]->complete_gradient();
  EXPECT_EQ(factors, (std::vector<std::vector<double>>{{}, {0.5}}));
  EXPECT_FALSE(parameters[1]->grad().defined());
  EXPECT_TRUE(parameters[0]->grad().defined()) << "not complete yet";
  early.start_step(0.25);
  parameters[0]->complete_gradient();
  early.step(0.25);
  EXPECT_EQ(factors, (std::vector<std::vector<double>>{{0.25}, {0.5}}));
}

}  // namespace
}  // namespace titan::core
