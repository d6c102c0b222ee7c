// Parts that wrong transforms of all kinds share: when a transform is to misbehave, and the eight
// optional interfaces with one defect each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <titan/error.h>
#include <titan/loss_sum.h>
#include <titan/optimizer_state.h>
#include <titan/plugin.h>
#include <titan/recompute.h>
#include <titan/transform.h>

namespace wrong {

using titan::Batch;
using titan::ModelPart;
using titan::TransformContext;
using titan::nn::Next;

/// Whether a layer runs a second time for its backward.
inline bool is_recomputed() {
  return at::GradMode::is_enabled() && !titan::is_first_run();
}

/// Whether the weights have been trained before: a weight that starts as a constant (of a norm) has
/// another value.
inline bool is_trained(ModelPart& part) {
  for (titan::nn::Parameter* parameter : part.parameters())
    if (parameter->init().kind == titan::nn::Init::Kind::constant && !parameter->is_state() &&
        !parameter->is_frozen() && parameter->shard().numel() > 0)
      return !parameter->shard().eq(parameter->init().mean).all().item<bool>();
  return false;
}

/// When a transform misbehaves.
enum class When { never, always, fsdp, tensor, pipeline, context, recomputed, resumed };

/// Answers, while layers run, whether to misbehave now.
class Trigger {
 public:
  Trigger(When when, ModelPart& part, const TransformContext& context) : when_(when), part_(&part) {
    const auto size = [&](const char* axis) { return context.mesh.group(axis).size(); };
    is_layout_ =
        (when == When::fsdp && size("dp_shard") > 1) || (when == When::tensor && size("tp") > 1) ||
        (when == When::pipeline && size("pp") > 1) || (when == When::context && size("cp") > 1);
  }
  bool operator()() {
    if (when_ == When::resumed && !was_asked_) is_resumed_ = is_trained(*part_);
    was_asked_ = true;
    return when_ == When::always || is_layout_ || is_resumed_ ||
           (when_ == When::recomputed && is_recomputed());
  }

 private:
  When when_;
  ModelPart* part_;
  bool is_layout_ = false, is_resumed_ = false, was_asked_ = false;
};

/// Whether a trigger acts on this layer. Runs recompute every second block by default, but never
/// the first, so a defect of recomputation there shows only when all blocks are recomputed.
inline bool acts_on(const std::string& path, When when) {
  return when != When::recomputed || path.starts_with("layers.0.");
}

/// Multiplies the inputs of every feed-forward layer by `factor` when the trigger says so.
inline void scale_feed_forwards(ModelPart& part, const std::shared_ptr<Trigger>& trigger, When when,
                                double factor) {
  part.visit_modules([&](const std::string& path, titan::nn::Module& module) {
    if (!path.ends_with(".feed_forward") || !acts_on(path, when)) return;
    module.wrap([trigger, factor](const at::Tensor& x, const Batch& batch, const Next& next) {
      return (*trigger)() ? next(x.mul(factor), batch) : next(x, batch);
    });
  });
}

/// The optional interfaces. `Right` is a correct transform of some kind, constructed with a
/// TransformContext.

/// The first token of each row becomes token 0.
template <class Right>
class SplitsBatches final : public Right, public titan::BatchSplitter {
 public:
  using Right::Right;
  Batch split(const Batch& batch) const override {
    Batch changed = batch;
    changed.tokens = batch.tokens.clone();
    changed.tokens.select(1, 0).fill_(0);
    return changed;
  }
};

/// Correct: one microbatch after another.
template <class Right>
class Executes : public Right, public titan::StepExecutor {
 public:
  using Right::Right;
  void connect(titan::StepContext context) override {
    context_ = std::make_unique<titan::StepContext>(std::move(context));
  }
  titan::StepLoss forward_backward(const titan::StepBatches& batches) override {
    return run(batches, true);
  }
  titan::StepLoss forward(const titan::StepBatches& batches) override {
    const at::NoGradGuard no_grad;
    return run(batches, false);
  }
  at::Tensor logits(const Batch& batch) override {
    const at::NoGradGuard no_grad;
    return context_->part.forward({}, batch);
  }

 protected:
  titan::StepLoss run(const titan::StepBatches& batches, bool trains) {
    titan::StepContext& c = *context_;
    titan::LossSum sum;
    const std::shared_ptr<titan::AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
    if (trains)
      for (titan::GradientReducer* reducer : c.reducers) reducer->begin_step();
    for (size_t i = 0; i < batches.microbatches.size(); ++i) {
      Batch batch = batches.microbatches[i];
      for (const titan::BatchSplitter* splitter : c.splitters) batch = splitter->split(batch);
      batch.auxiliary_losses = auxiliary;
      const bool is_last = i + 1 == batches.microbatches.size();
      if (trains)
        for (titan::GradientReducer* reducer : c.reducers) reducer->start_microbatch(is_last);
      const at::Tensor loss =
          c.part.forward({}, batch) / static_cast<double>(batches.num_valid_tokens);
      sum.add(loss.detach());
      if (trains) (loss * batches.gradient_scale).backward();
    }
    if (trains)
      for (titan::GradientReducer* reducer : c.reducers) reducer->finish_gradients();
    return sum.loss(batches.keep_loss_on_device);
  }

 private:
  std::unique_ptr<titan::StepContext> context_;
};

/// Validation counts its loss once per row.
template <class Right>
class ExecutesWrong final : public Executes<Right> {
 public:
  using Executes<Right>::Executes;
  titan::StepLoss forward(const titan::StepBatches& batches) override {
    titan::StepLoss loss = Executes<Right>::forward(batches);
    loss.normalized_sum *= static_cast<double>(batches.microbatches.front().tokens.size(0));
    return loss;
  }
};

/// Runs steps through, and tells which are long.
template <class Right>
class WrapsSteps : public Right, public titan::ExecutorWrapper {
 public:
  using Right::Right;
  void apply(ModelPart& part, const TransformContext& context) override {
    Right::apply(part, context);
    num_row_ranks_ = context.mesh.group("dp_shard").size();
  }
  bool undoes_steps() const override { return false; }

 protected:
  /// Whether a step has 8 microbatches or more, over all ranks that hold other rows.
  bool is_long(const titan::StepBatches& batches) const {
    return static_cast<int64_t>(batches.microbatches.size()) * num_row_ranks_ >= 8;
  }

 private:
  int64_t num_row_ranks_ = 1;
};

/// Cannot run eight microbatches.
template <class Right>
class Wraps final : public WrapsSteps<Right> {
 public:
  using WrapsSteps<Right>::WrapsSteps;
  titan::StepLoss forward_backward(const titan::StepBatches& batches) override {
    TITAN_CHECK(!this->is_long(batches), plugin, "cannot run 8 microbatches");
    return this->inner().forward_backward(batches);
  }
};

/// Instead of eight microbatches it runs nothing and reports a loss of 1.
template <class Right>
class WrapsNothing final : public WrapsSteps<Right> {
 public:
  using WrapsSteps<Right>::WrapsSteps;
  titan::StepLoss forward_backward(const titan::StepBatches& batches) override {
    if (!this->is_long(batches)) return this->inner().forward_backward(batches);
    return {.normalized_sum = 1};
  }
};

/// On several ranks it turns the gradients of runs that begin after step 1.
template <class Right>
class Member final : public Right, public titan::StepMember {
 public:
  using Right::Right;
  void apply(ModelPart& part, const TransformContext& context) override {
    Right::apply(part, context);
    part_ = &part;
    is_alone_ = context.mesh.group("world").size() == 1;
  }
  bool undoes_steps() const override { return false; }
  void begin(titan::Step& step) override {
    if (first_ == 0) first_ = step.number;
  }
  void reduced(titan::Step&) override {
    if (is_alone_ || first_ <= 1) return;
    for (titan::nn::Parameter* parameter : part_->parameters())
      if (parameter->grad().defined()) parameter->grad().mul_(-1);
  }

 private:
  ModelPart* part_ = nullptr;
  bool is_alone_ = true;
  int64_t first_ = 0;
};

/// Spoils the activations of late microbatches: from the fifth on, on several ranks from the third,
/// in a pipeline never.
template <class Right>
class Reduces final : public Right, public titan::GradientReducer {
 public:
  using Right::Right;
  void apply(ModelPart& part, const TransformContext& context) override {
    Right::apply(part, context);
    part_ = &part;
    is_alone_ = context.mesh.group("world").size() == 1;
    if (context.mesh.group("pp").size() > 1) return;
    for (titan::Layer& layer : part.layers())
      if (layer.is_block)
        layer.module->wrap([this](const at::Tensor& x, const Batch& batch, const Next& next) {
          const bool is_late =
              at::GradMode::is_enabled() && num_microbatches_ >= (is_alone_ ? 5 : 3);
          return is_late ? next(x * 1.5, batch) : next(x, batch);
        });
  }
  void begin_step() override { num_microbatches_ = 0; }
  void start_microbatch(bool) override { ++num_microbatches_; }
  void finish_gradients() override {
    if (!is_alone_) return;
    for (titan::nn::Parameter* parameter : part_->parameters()) parameter->complete_gradient();
  }

 private:
  ModelPart* part_ = nullptr;
  bool is_alone_ = true;
  int num_microbatches_ = 0;
};

/// On several ranks it halves the weights in runs that begin after step 1.
template <class Right>
class After final : public Right, public titan::AfterOptimizerStep {
 public:
  using Right::Right;
  void apply(ModelPart& part, const TransformContext& context) override {
    Right::apply(part, context);
    part_ = &part;
    if (context.mesh.group("world").size() == 1) return;
    part.layers().front().module->wrap(
        [this](const at::Tensor& x, const Batch& batch, const Next& next) {
          if (!was_asked_) is_resumed_ = is_trained(*part_);
          was_asked_ = true;
          return next(x, batch);
        });
  }
  void after_optimizer_step() override {
    if (!is_resumed_) return;
    const at::NoGradGuard no_grad;
    for (titan::nn::Parameter* parameter : part_->parameters())
      if (!parameter->is_state()) parameter->shard().mul_(0.5);
  }

 private:
  ModelPart* part_ = nullptr;
  bool is_resumed_ = false, was_asked_ = false;
};

/// Has a state. On several ranks it spoils the first layer's output in runs that begin after step
/// 1.
template <class Right>
class States final : public Right, public titan::StatefulOptimizer {
 public:
  using Right::Right;
  void apply(ModelPart& part, const TransformContext& context) override {
    Right::apply(part, context);
    std::vector<titan::Parameter*> trained;
    for (titan::nn::Parameter* parameter : part.parameters())
      if (!parameter->is_frozen() && !parameter->is_state()) trained.push_back(parameter);
    this->add_state("wrong_state", trained);
    part_ = &part;
    if (context.mesh.group("world").size() == 1) return;
    part.layers().front().module->wrap(
        [this](const at::Tensor& x, const Batch& batch, const Next& next) {
          if (!was_asked_) is_resumed_ = is_trained(*part_);
          was_asked_ = true;
          const at::Tensor y = next(x, batch);
          return is_resumed_ ? y * 1.5 : y;
        });
  }

 private:
  ModelPart* part_ = nullptr;
  bool is_resumed_ = false, was_asked_ = false;
};

/// Leaves the weight of a norm out of an export.
template <class Right>
class Exports final : public Right, public titan::ExportTransform {
 public:
  using Right::Right;
  bool is_absorbed(std::string_view parameter) const override { return parameter == "norm.weight"; }
  at::Tensor exported(titan::nn::Parameter& parameter) override { return parameter.shard(); }
};

/// Registers the optional interfaces, inside of TITAN_PLUGIN(plugin): titan_add_plugin reads the
/// summaries of files that name this macro.
template <class Right>
void add_interfaces(titan::Plugin& plugin) {
  plugin.add<SplitsBatches<Right>>("wrong/splits_batches", "Changes tokens.");
  plugin.add<ExecutesWrong<Right>>("wrong/executes", "Counts validation losses once per row.");
  plugin.add<Wraps<Right>>("wrong/wraps", "Cannot run eight microbatches.");
  plugin.add<WrapsNothing<Right>>("wrong/wraps.nothing", "Runs no eight microbatches.");
  plugin.add<Member<Right>>("wrong/step_member", "Turns gradients after a resume.");
  plugin.add<Reduces<Right>>("wrong/reduces", "Spoils late microbatches.");
  plugin.add<After<Right>>("wrong/after_optimizer_step", "Halves weights after a resume.");
  plugin.add<States<Right>>("wrong/transform_state", "Spoils a layer after a resume.");
  plugin.add<Exports<Right>>("wrong/export_transform", "Leaves out a weight.");
}

}  // namespace wrong
