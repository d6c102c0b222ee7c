// Adam and AdamW by ATen's fused kernel, its foreach operations or a plain loop.
// Kingma and Ba, 2015; Loshchilov and Hutter, 2019.
#include <cmath>
#include <deque>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <titan/optimizer.h>
#include <titan/plugin.h>

namespace {

using titan::Parameter;

enum class Implementation { fused, foreach, for_loop };

struct AdamOptions {
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  Implementation implementation = Implementation::fused;
};

/// Whether the decay acts on the weights themselves (AdamW) or is added to the gradient (Adam).
enum class Decay { decoupled, in_gradient };

/// With g the gradient, t the step: m <- m + (1-b1)(g - m), v <- b2 v + (1-b2) g²,
/// p <- p - lr / (1-b1^t) * m / (sqrt(v) / sqrt(1-b2^t) + eps).
template <Decay kDecay>
class Adam final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  Adam(const AdamOptions& options, titan::OptimizerContext context)
      : options_(options),
        parameters_(std::move(context.parameters)),
        states_(parameters_.size()) {}

  double lr() const override { return options_.lr; }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    const Lists lists = gather();
    if (lists.parameters.empty()) return;
    if (lists.parameters.front().is_meta()) return;  // the states are there, nothing has values
    at::_foreach_add_(lists.steps, 1);
    const double lr = options_.lr * lr_factor;
    switch (options_.implementation) {
      case Implementation::fused:
        return step_fused(lists, lr);
      case Implementation::foreach:
        return step_foreach(lists, lr);
      case Implementation::for_loop:
        return step_loop(lists, lr);
    }
  }

  void visit_state(const StateVisitor& visit) override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      State& state = ready_state(i);
      visit(*parameters_[i], "step", state.step);
      visit(*parameters_[i], "exp_avg", state.exp_avg);
      visit(*parameters_[i], "exp_avg_sq", state.exp_avg_sq);
    }
  }

 private:
  struct State {
    at::Tensor step, exp_avg, exp_avg_sq;
  };
  struct Lists {
    std::vector<at::Tensor> parameters, gradients, exp_avgs, exp_avg_sqs, steps;
  };

  /// Made at the first use: a parameter without a gradient never costs memory.
  State& ready_state(size_t index) {
    State& state = states_[index];
    if (!state.step.defined()) {
      const at::Tensor& shard = parameters_[index]->shard();
      state.step = at::zeros({}, shard.options().dtype(at::kFloat).requires_grad(false));
      state.exp_avg = at::zeros_like(shard.detach());
      state.exp_avg_sq = at::zeros_like(shard.detach());
    }
    return state;
  }

  Lists gather() {
    Lists lists;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i]->grad();
      if (!gradient.defined()) continue;
      State& state = ready_state(i);
      lists.parameters.push_back(parameters_[i]->shard());
      lists.gradients.push_back(gradient);
      lists.exp_avgs.push_back(state.exp_avg);
      lists.exp_avg_sqs.push_back(state.exp_avg_sq);
      lists.steps.push_back(state.step);
    }
    return lists;
  }

  void step_fused(const Lists& l, double lr) {
    const AdamOptions& o = options_;
    if constexpr (kDecay == Decay::decoupled) {
      at::_fused_adamw_(l.parameters, l.gradients, l.exp_avgs, l.exp_avg_sqs, {}, l.steps, lr,
                        o.beta1, o.beta2, o.weight_decay, o.eps, /*amsgrad=*/false,
                        /*maximize=*/false, {}, {});
    } else {
      at::_fused_adam_(l.parameters, l.gradients, l.exp_avgs, l.exp_avg_sqs, {}, l.steps, lr,
                       o.beta1, o.beta2, o.weight_decay, o.eps, /*amsgrad=*/false,
                       /*maximize=*/false, {}, {});
    }
  }

  void step_foreach(const Lists& l, double lr) {
    const AdamOptions& o = options_;
    std::vector<at::Tensor> gradients = l.gradients;
    if constexpr (kDecay == Decay::decoupled) {
      at::_foreach_mul_(l.parameters, 1 - lr * o.weight_decay);
    } else {
      gradients = at::_foreach_add(gradients, l.parameters, o.weight_decay);
    }
    at::_foreach_lerp_(l.exp_avgs, gradients, 1 - o.beta1);
    at::_foreach_mul_(l.exp_avg_sqs, o.beta2);
    at::_foreach_addcmul_(l.exp_avg_sqs, gradients, gradients, 1 - o.beta2);
    // every parameter has seen the same number of steps, except those that joined later
    std::vector<at::Scalar> step_sizes, corrections;
    for (const at::Tensor& step : l.steps) {
      const double t = step.template item<double>();
      step_sizes.emplace_back(-lr / (1 - std::pow(o.beta1, t)));
      corrections.emplace_back(std::sqrt(1 - std::pow(o.beta2, t)));
    }
    std::vector<at::Tensor> denominators = at::_foreach_sqrt(l.exp_avg_sqs);
    at::_foreach_div_(denominators, corrections);
    at::_foreach_add_(denominators, o.eps);
    at::_foreach_addcdiv_(l.parameters, l.exp_avgs, denominators, step_sizes);
  }

  void step_loop(const Lists& l, double lr) {
    const AdamOptions& o = options_;
    for (size_t i = 0; i < l.parameters.size(); ++i) {
      at::Tensor p = l.parameters[i], g = l.gradients[i], m = l.exp_avgs[i], v = l.exp_avg_sqs[i];
      if constexpr (kDecay == Decay::decoupled) {
        p.mul_(1 - lr * o.weight_decay);
      } else {
        g = g.add(p, o.weight_decay);
      }
      m.lerp_(g, 1 - o.beta1);
      v.mul_(o.beta2).addcmul_(g, g, 1 - o.beta2);
      const double t = l.steps[i].item().toDouble();
      const at::Tensor denominator = v.sqrt().div_(std::sqrt(1 - std::pow(o.beta2, t))).add_(o.eps);
      p.addcdiv_(m, denominator, -lr / (1 - std::pow(o.beta1, t)));
    }
  }

  AdamOptions options_;
  std::vector<Parameter*> parameters_;
  std::vector<State> states_;
};

template <class T>
void declare_options(titan::ComponentBuilder<T>& builder) {
  using O = AdamOptions;
  builder.option("lr", &O::lr, "Base learning rate")
      .greater_than(0)
      .option("beta1", &O::beta1, "Decay of the first moment")
      .at_least(0)
      .less_than(1)
      .option("beta2", &O::beta2, "Decay of the second moment")
      .at_least(0)
      .less_than(1)
      .option("eps", &O::eps, "Added to the denominator")
      .at_least(0)
      .option("weight_decay", &O::weight_decay,
              "Applied to all parameters, norms and embeddings included")
      .at_least(0)
      .option("implementation", &O::implementation,
              "How the update is computed; the results agree up to rounding",
              {{"for-loop", Implementation::for_loop},
               {"foreach", Implementation::foreach},
               {"fused", Implementation::fused}});
}

}  // namespace

TITAN_PLUGIN(plugin) {
  using AdamW = Adam<Decay::decoupled>;
  using PlainAdam = Adam<Decay::in_gradient>;
  plugin.add<AdamW>("AdamW", "Adam with decoupled weight decay.").options(declare_options<AdamW>);
  plugin.add<PlainAdam>("Adam", "Adam with the weight decay added to the gradient.")
      .options(declare_options<PlainAdam>);
}
