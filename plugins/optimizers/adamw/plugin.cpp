// Optimizers `Adam` and `AdamW`: by ATen's fused kernel, its foreach operations or a plain loop.
// Kingma and Ba, 2015; Loshchilov and Hutter, 2019.
#include <titan/optimizer.h>
#include <titan/plugin.h>
#include <titan/scales_gradients.h>

#include "../common/adam_update.h"

namespace {

using namespace titan::optimizers;

struct AdamOptions {
  double lr = 8e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  Implementation implementation = Implementation::fused;
  StateDtype state_dtype = StateDtype::as_stored;
  bool stochastic_rounding = false;
};

template <Decay kDecay>
class Adam final : public titan::Optimizer,
                   public titan::StatefulOptimizer,
                   public titan::ScalesGradients {
 public:
  Adam(const AdamOptions& options, const titan::OptimizerContext& context)
      : lr_(options.lr),
        update_({.factors = {options.beta1, options.beta2, options.eps, options.weight_decay},
                 .decay = kDecay,
                 .implementation = options.implementation,
                 .state_dtype = options.state_dtype,
                 .stochastic_rounding = options.stochastic_rounding},
                context.parameters, context.seed, *this) {}

  double lr() const override { return lr_; }
  void step(double lr_factor) override { update_.step(lr_ * lr_factor); }
  bool scales_gradients() const override { return update_.scales_gradients(); }
  void step_scaled(double lr_factor, const at::Tensor& scale) override {
    update_.step(lr_ * lr_factor, scale);
  }

 private:
  double lr_;
  AdamUpdate update_;
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
               {"fused", Implementation::fused}})
      .option("state_dtype", &O::state_dtype,
              "Data type of both moments; the update is computed in float32 if it differs from "
              "that of the weights",
              {{"as_stored", StateDtype::as_stored},
               {"bfloat16", StateDtype::bfloat16},
               {"float32", StateDtype::float32}})
      .option("stochastic_rounding", &O::stochastic_rounding,
              "Update bfloat16 weights in float32 and round them stochastically");
}

}  // namespace

TITAN_PLUGIN(plugin) {
  using AdamW = Adam<Decay::decoupled>;
  using PlainAdam = Adam<Decay::in_gradient>;
  plugin.add<AdamW>("AdamW", "Adam with decoupled weight decay.").options(declare_options<AdamW>);
  plugin.add<PlainAdam>("Adam", "Adam with the weight decay added to the gradient.")
      .options(declare_options<PlainAdam>);
}
