// Optimizers with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing.
#include <algorithm>
#include <atomic>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <titan/error.h>
#include <titan/optimizer.h>
#include <titan/plugin.h>

namespace {

enum class Fault {
  none,
  updates,
  updates_infinite,
  zero_factor,
  no_gradient,
  no_gradient_later,
  deterministic,
  learning_rate,
  learning_rate_negative,
  declared_state,
  no_hidden_state,
  layout_fsdp,
  layout_tensor,
  accumulation,
  resume,
  step_member
};

struct Options {
  double lr = 1e-2;
  double momentum = 0.9;
  double weight_decay = 0.1;  // decoupled
};

bool is_sharded(const titan::Parameter& parameter, bool over_tensor) {
  for (const titan::nn::Sharding& each : parameter.shardings())
    if ((each.group == "tp") == over_tensor) return true;
  return false;
}

// What both kinds of optimizers share: w <- w - lr * lr_factor * (update + weight_decay * w).
template <Fault fault>
class Descent : public titan::Optimizer {
 public:
  Descent(const Options& options, titan::OptimizerContext context)
      : options_(options), parameters_(std::move(context.parameters)) {
    if (fault == Fault::no_gradient_later) is_left_out_.resize(parameters_.size());
    if (fault == Fault::accumulation)
      for (titan::Parameter* each : parameters_)
        each->on_gradient([this](titan::Parameter&) { ++num_backwards_; });
  }

  double lr() const override {
    return fault == Fault::learning_rate_negative ? -options_.lr : options_.lr * lr_factor_;
  }

  void step(double lr_factor) override {
    at::NoGradGuard no_grad;
    if (fault == Fault::learning_rate) lr_factor_ = lr_factor * 0.9;
    begin();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor gradient = parameters_[i]->grad();
      const at::Tensor& weight = parameters_[i]->shard();
      double lr = options_.lr * lr_factor;
      if (!gradient.defined()) {
        if (fault == Fault::no_gradient) weight.mul_(1 - lr * options_.weight_decay);
        if (fault == Fault::no_gradient_later) is_left_out_[i] = true;
        continue;
      }
      if (fault == Fault::updates && i + 1 == parameters_.size() && i > 0) continue;
      if (fault == Fault::no_gradient_later && is_left_out_[i]) continue;
      if (fault == Fault::layout_fsdp && is_sharded(*parameters_[i], false)) lr *= 1.01;
      if (fault == Fault::layout_tensor && is_sharded(*parameters_[i], true)) lr *= 1.01;
      if (fault == Fault::accumulation && num_backwards_ > 0)
        lr *= static_cast<double>(num_backwards_) / static_cast<double>(parameters_.size());
      lr *= factor();
      const double decay = fault == Fault::zero_factor ? options_.lr : lr;
      const at::Tensor change = update(i, gradient);
      weight.mul_(1 - decay * options_.weight_decay).sub_(change, lr);
    }
    num_backwards_ = 0;
  }

 protected:
  virtual void begin() {}
  virtual double factor() const { return 1; }
  virtual at::Tensor update(size_t index, const at::Tensor& gradient) = 0;

  Options options_;
  std::vector<titan::Parameter*> parameters_;

 private:
  double lr_factor_ = 1;
  int64_t num_backwards_ = 0;
  std::vector<bool> is_left_out_;
};

// With momentum, and the number of steps as a state.
template <Fault fault>
class Momentum : public Descent<fault>, public titan::StatefulOptimizer {
 public:
  Momentum(const Options& options, titan::OptimizerContext context)
      : Descent<fault>(options, std::move(context)),
        momentum_(add_state("momentum", this->parameters_)),
        count_(add_state("count", this->parameters_,
                         {.is_number = true, .whole_shape = {}, .dtype = {}})) {}

 protected:
  void begin() override {
    ++hidden_steps_;
    const double done = count_[0].template item<double>();
    if (fault == Fault::resume && hidden_steps_ == 1) {
      if (done == 0) has_begun_ = true;
      is_other_ = !has_begun_;
    }
    is_first_ = done == 0;
  }
  double factor() const override {
    if (fault == Fault::deterministic && is_first_) return 1 + 0.01 * number_;
    if (fault == Fault::declared_state && hidden_steps_ % 2 == 0) return 0.9;
    if (fault == Fault::resume && is_other_) return 0.9;
    return 1;
  }
  at::Tensor update(size_t i, const at::Tensor& gradient) override {
    count_[i].add_(1);
    momentum_[i].mul_(this->options_.momentum).add_(gradient);
    return fault == Fault::updates_infinite && count_[i].template item<double>() == 3
               ? momentum_[i] / 0
               : momentum_[i];
  }

 private:
  static inline std::atomic<int> made_ = 0;
  static inline bool has_begun_ = false;  // an optimizer of this process has done its first step
  titan::OptimizerState& momentum_;
  titan::OptimizerState& count_;
  int number_ = made_++;
  int64_t hidden_steps_ = 0;
  bool is_first_ = false, is_other_ = false;
};

template <Fault fault>
class Plain final : public Descent<fault> {
 public:
  using Descent<fault>::Descent;

 protected:
  void begin() override { ++hidden_steps_; }
  double factor() const override {
    return fault == Fault::no_hidden_state && hidden_steps_ % 2 == 0 ? 0.9 : 1;
  }
  at::Tensor update(size_t, const at::Tensor& gradient) override { return gradient; }

 private:
  int64_t hidden_steps_ = 0;
};

template <Fault fault>
class Member final : public Momentum<fault>, public titan::StepMember {
 public:
  using Momentum<fault>::Momentum;
  bool undoes_steps() const override { return false; }
  void reduced(titan::Step& step) override {
    TITAN_CHECK(fault != Fault::step_member || step.number < 4, data,
                "a table of three steps is full");
  }
};

class Empty final : public titan::Optimizer {
 public:
  explicit Empty(titan::OptimizerContext) {}
  double lr() const override { return 0; }
  void step(double) override {}
};

}  // namespace

TITAN_PLUGIN(plugin) {
  const auto declare = [](auto& of) {
    of.option("lr", &Options::lr, "Base learning rate").greater_than(0);
    of.option("momentum", &Options::momentum, "Decay of the running gradient")
        .at_least(0)
        .less_than(1);
    of.option("weight_decay", &Options::weight_decay, "Decoupled decay per step").at_least(0);
  };
  plugin.add<Momentum<Fault::none>>("wrong/right", "Gradient descent with momentum.")
      .options(declare);
  plugin.add<Plain<Fault::none>>("wrong/right.plain", "Gradient descent.").options(declare);
  plugin.add<Member<Fault::none>>("wrong/right.member", "Takes part in steps.").options(declare);
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<Momentum<Fault::updates>>("wrong/updates", "Leaves the last parameter out.")
      .options(declare);
  plugin
      .add<Momentum<Fault::updates_infinite>>("wrong/updates.infinite",
                                              "Divides by 0 in the third step.")
      .options(declare);
  plugin.add<Momentum<Fault::zero_factor>>("wrong/zero_factor", "Decays by the base learning rate.")
      .options(declare);
  plugin
      .add<Momentum<Fault::no_gradient>>("wrong/no_gradient",
                                         "Decays parameters without a gradient.")
      .options(declare);
  plugin
      .add<Momentum<Fault::no_gradient_later>>("wrong/no_gradient.later",
                                               "Never returns to such a parameter.")
      .options(declare);
  plugin
      .add<Momentum<Fault::deterministic>>("wrong/deterministic", "Differs from object to object.")
      .options(declare);
  plugin
      .add<Momentum<Fault::learning_rate>>("wrong/learning_rate",
                                           "Reports the current learning rate.")
      .options(declare);
  plugin
      .add<Momentum<Fault::learning_rate_negative>>("wrong/learning_rate.negative",
                                                    "Reports a negative learning rate.")
      .options(declare);
  plugin
      .add<Momentum<Fault::declared_state>>("wrong/declared_state",
                                            "Counts steps outside of its state.")
      .options(declare);
  plugin
      .add<Plain<Fault::no_hidden_state>>("wrong/no_hidden_state", "Counts steps without a state.")
      .options(declare);
  plugin
      .add<Momentum<Fault::layout_fsdp>>("wrong/layout_fsdp",
                                         "Depends on shards of data parallelism.")
      .options(declare);
  plugin
      .add<Momentum<Fault::layout_tensor>>("wrong/layout_tensor",
                                           "Depends on shards of tensor parallelism.")
      .options(declare);
  plugin.add<Momentum<Fault::accumulation>>("wrong/accumulation", "Counts backward passes.")
      .options(declare);
  plugin.add<Momentum<Fault::resume>>("wrong/resume", "Depends on the first step of the process.")
      .options(declare);
  plugin.add<Member<Fault::step_member>>("wrong/step_member", "Fails in the fourth step.")
      .options(declare);
}
