// An optimizer that remembers the first three moments of each gradient: Adam, and a step back where
// gradients lean to one side, by their running third moment.
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <titan/optimizer.h>
#include <titan/plugin.h>

namespace three_moments {
namespace {

struct Options {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double beta3 = 0.999;
  double lean = 0.05;
  double eps = 1e-8;
  double weight_decay = 0.1;
};

/// With g the gradient, m_k the running mean of g^k and t the number of gradients, bias-corrected
/// as Adam's, h_k = m_k / (1 - beta_k^t), and s = sqrt(h_2) + eps:
///   w <- w (1 - lr weight_decay) - lr (h_1 / s - lean h_3 / s^3).
class ThreeMoments final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  ThreeMoments(const Options& options, titan::OptimizerContext context)
      : options_(options),
        parameters_(std::move(context.parameters)),
        count_(add_state("step", parameters_, {.is_number = true})),
        moments_{&add_state("exp_avg", parameters_), &add_state("exp_avg_sq", parameters_),
                 &add_state("exp_avg_cube", parameters_)} {}

  double lr() const override { return options_.lr; }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (const at::Tensor gradient = parameters_[i]->grad(); gradient.defined())
        update(i, gradient, options_.lr * lr_factor);
  }

 private:
  void update(size_t i, const at::Tensor& gradient, double lr) {
    const double betas[] = {options_.beta1, options_.beta2, options_.beta3};
    const double t = count_[i].add_(1).item<double>();
    at::Tensor power = gradient, means[3];
    for (size_t k = 0; k < 3; ++k, power = power * gradient) {
      const at::Tensor& moment = (*moments_[k])[i];
      moment.mul_(betas[k]).add_(power, 1 - betas[k]);
      means[k] = moment / (1 - std::pow(betas[k], t));
    }
    const at::Tensor scale = means[1].sqrt().add_(options_.eps);
    const at::Tensor direction = means[0] / scale - means[2] / scale.pow(3) * options_.lean;
    parameters_[i]->shard().mul_(1 - lr * options_.weight_decay).sub_(direction, lr);
  }

  Options options_;
  std::vector<titan::Parameter*> parameters_;
  titan::OptimizerState& count_;
  titan::OptimizerState* moments_[3];
};

/// A moment of higher order is noisier, so it must not be forgotten sooner.
void check_memory(const Options& o, const titan::JobView&, titan::RuleReport& report) {
  if (o.beta2 < o.beta1) report.error("beta2", "beta2 must be >= beta1");
  if (o.beta3 < o.beta2) report.error("beta3", "beta3 must be >= beta2");
}

}  // namespace
}  // namespace three_moments

TITAN_PLUGIN(plugin) {
  using O = three_moments::Options;
  plugin
      .add<three_moments::ThreeMoments>("maintainers/three_moments",
                                        "Adam with the third moment of each gradient.")
      .option("lr", &O::lr, "Base learning rate")
      .greater_than(0)
      .option("beta1", &O::beta1, "Decay of the running mean")
      .at_least(0)
      .less_than(1)
      .option("beta2", &O::beta2, "Decay of the running square")
      .at_least(0)
      .less_than(1)
      .option("beta3", &O::beta3, "Decay of the running cube")
      .at_least(0)
      .less_than(1)
      .option("lean", &O::lean, "Weight of the third moment; 0: Adam")
      .at_least(0)
      .option("eps", &O::eps, "Added to the root of the square")
      .greater_than(0)
      .option("weight_decay", &O::weight_decay, "Decoupled, times the learning rate")
      .at_least(0)
      .check(three_moments::check_memory);
}
