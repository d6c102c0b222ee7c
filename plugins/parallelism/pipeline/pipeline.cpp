#include "pipeline.h"

#include <algorithm>
#include <set>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <c10/util/Exception.h>

#include <titan/error.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/step_phase.h>

#include "action_text.h"

namespace titan::pipeline {
namespace {

using Kind = PipelineAction::Kind;

/// Whether this action completes the weights' gradients of its microbatch.
bool gives_weight_gradients(Kind kind) {
  return kind == Kind::backward || kind == Kind::weight_grad;
}

StepPhase phase_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return StepPhase::forward;
    case Kind::backward:
    case Kind::input_grad:
    case Kind::weight_grad:
      return StepPhase::backward;
    case Kind::send_output:
    case Kind::send_grad:
    case Kind::receive_input:
    case Kind::receive_grad:
      return StepPhase::communication;
  }
  return StepPhase::other;
}

/// The stages that use each parameter, ascending.
Pipeline::Users users_of_parameters(ModelPart& part, const std::vector<LayerRange>& ranges) {
  Pipeline::Users users;
  for (size_t stage = 0; stage < ranges.size(); ++stage)
    for (size_t layer = ranges[stage].first; layer < ranges[stage].last; ++layer)
      part.layers()[layer].module->visit_parameters([&](nn::Parameter& parameter) {
        std::vector<int>& stages = users[&parameter];
        if (stages.empty() || stages.back() != static_cast<int>(stage))
          stages.push_back(static_cast<int>(stage));
      });
  return users;
}

Holders holders_of_parameters(const Pipeline::Users& users, const PipelinePlan& plan) {
  Holders holders;
  for (const auto& [parameter, stages] : users) {
    std::set<int> ranks;
    for (const int stage : stages) ranks.insert(plan.rank_of_stage[static_cast<size_t>(stage)]);
    holders[parameter].assign(ranks.begin(), ranks.end());
  }
  return holders;
}

}  // namespace

void Pipeline::apply(ModelPart& part, const TransformContext& context) {
  group_ = context.mesh.group("pp");
  TITAN_CHECK(context.pipeline && context.pipeline->shape.num_ranks == group_.size(), config,
              "the pipeline has ", group_.size(),
              " ranks, but the schedule was not planned for this number; set "
              "parallelism.pipeline_parallel_degree instead of only selecting the plugin");
  plan_ = context.pipeline;
  recorder_ = &context.mesh.recorder();
  const std::vector<LayerRange> ranges = split_into_stages(part, plan_->shape.num_stages, options_);
  const Users users = users_of_parameters(part, ranges);
  keep_own_stages(part, ranges);
  tied_.emplace(part, holders_of_parameters(users, *plan_), group_);
  links_.emplace(*plan_, group_);
  list_tasks(users);
}

void Pipeline::keep_own_stages(ModelPart& part, const std::vector<LayerRange>& ranges) {
  const auto width_after = [&](size_t layer) {
    const int64_t width = part.layers()[layer].output_width;
    TITAN_CHECK(width > 0, config, "a pipeline cannot cut after layer '", part.layers()[layer].name,
                "': its Layer::output_width is not set");
    return width;
  };
  std::vector<size_t> kept;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (!is_here(static_cast<int>(i))) continue;
    const LayerRange& range = ranges[i];
    const LayerRange here{kept.size(), kept.size() + range.last - range.first};
    for (size_t layer = range.first; layer < range.last; ++layer) kept.push_back(layer);
    stages_.emplace_back(part, static_cast<int>(i), here, i == 0 ? 0 : width_after(range.first - 1),
                         i + 1 == ranges.size() ? 0 : width_after(range.last - 1));
  }
  part.keep(kept);
}

/// The last action that computes gradients of a stage's weights completes them. If stages of this
/// rank share a weight, the last action of all of them does.
void Pipeline::list_tasks(const Users& users) {
  std::map<int, int> first_relative;  // stage -> the first stage here that it shares a weight with
  for (const Stage& stage : stages_) first_relative[stage.index()] = stage.index();
  for (const auto& [parameter, stages] : users) {
    const auto first =
        std::find_if(stages.begin(), stages.end(), [this](int stage) { return is_here(stage); });
    for (const int stage : stages)
      if (is_here(stage)) first_relative[stage] = std::min(first_relative[stage], *first);
  }
  std::map<int, size_t> last_of;  // by first relative
  for (const PipelineAction& action : plan_->actions[static_cast<size_t>(group_.rank())]) {
    if (gives_weight_gradients(action.kind))
      last_of[first_relative.at(action.stage)] = tasks_.size();
    splits_ = splits_ || action.kind == Kind::weight_grad;
    tasks_.push_back({action});
  }
  for (const auto& [stage, place] : last_of) tasks_[place].ends_gradients = true;
}

bool Pipeline::is_here(int stage) const {
  return plan_->rank_of_stage[static_cast<size_t>(stage)] == group_.rank();
}

Stage& Pipeline::stage(int index) {
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [&](const Stage& stage) { return stage.index() == index; });
  TITAN_ASSERT(found != stages_.end(), "stage ", index, " is not on this rank");
  return *found;
}

StepLoss Pipeline::forward_backward(const StepBatches& batches) {
  LossSum loss;
  const std::shared_ptr<AuxiliaryLosses> auxiliary = batches.auxiliary_losses();
  for (GradientReducer* reducer : step_->reducers) reducer->begin_step();
  for (const Batch& round : batches.microbatches) {
    const bool is_last_round = &round == &batches.microbatches.back();
    start_round(round, batches, auxiliary);
    TITAN_CHECK(static_cast<int>(microbatches_.size()) == plan_->shape.num_microbatches, internal,
                "a round of ", round.tokens.size(0), " rows for ", plan_->shape.num_microbatches,
                " microbatches of ", options_.microbatch_size);
    for (const Task& task : tasks_) {
      const Kind kind = task.action.kind;
      if (gives_weight_gradients(kind) || kind == Kind::input_grad)
        for (GradientReducer* reducer : step_->reducers)
          reducer->start_microbatch(is_last_round && task.ends_gradients);
      run(task.action);
    }
    loss.add(end_round());
  }
  {
    const PhaseScope phase(*recorder_, StepPhase::backward);
    for (GradientReducer* reducer : step_->reducers) reducer->finish_gradients();
    tied_->sum(step_->device.device());
  }
  loss.sum_over(group_, step_->device.device());
  StepLoss total = loss.loss(batches.keep_loss_on_device);
  if (total.device_loss.defined()) return total;
  if (const auto sum = auxiliary->sum())
    total.auxiliary = *sum / static_cast<double>(batches.num_valid_tokens);
  return total;
}

/// Runs the plan's forwards only, repeated until all microbatches of the round are done.
StepLoss Pipeline::forward(const StepBatches& batches) {
  const at::NoGradGuard no_grad;
  LossSum loss;
  for (const Batch& round : batches.microbatches) {
    const int64_t rows_at_once = plan_->shape.num_microbatches * options_.microbatch_size;
    for (int64_t first = 0; first < round.tokens.size(0); first += rows_at_once) {
      start_round(round.rows(first, std::min(rows_at_once, round.tokens.size(0) - first)), batches,
                  nullptr);
      const int num_here = static_cast<int>(microbatches_.size());
      for (const Task& task : tasks_) {
        const Kind kind = task.action.kind;
        if (task.action.microbatch < num_here &&
            (kind == Kind::forward || kind == Kind::send_output || kind == Kind::receive_input))
          run(task.action);
      }
      loss.add(end_round());
    }
  }
  loss.sum_over(group_, step_->device.device());
  return loss.loss(batches.keep_loss_on_device);
}

at::Tensor Pipeline::logits(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const Batch here = batch.to(step_->device.device());
  at::Tensor between;  // output of the last stage that ran here; at the end the logits on all ranks
  int64_t vocab_size = 0;
  for (int index = 0; index < plan_->shape.num_stages; ++index) {
    if (!is_here(index)) continue;
    Stage& stage = this->stage(index);
    stage.start(1);
    if (!stage.is_first() && !is_here(index - 1)) {
      between = empty_like_boundary(stage.input_boundary(here));
      group_.receive(between, plan_->rank_of_stage[static_cast<size_t>(index - 1)], index).wait();
    }
    stage.forward(0, here, between, /*splits=*/false);
    between = stage.output(0);
    stage.forget(0);
    if (stage.is_last())
      vocab_size = between.size(-1);
    else if (!is_here(index + 1))
      group_
          .send(between.contiguous(), plan_->rank_of_stage[static_cast<size_t>(index + 1)],
                index + 1)
          .wait();
  }
  const int last = plan_->rank_of_stage.back();
  vocab_size = group_.all_reduce(vocab_size, dist::Reduce::max, step_->device.device());
  const int64_t num_tokens =
      here.logits_of.defined() ? here.logits_of.numel() : here.tokens.size(1);
  if (group_.rank() != last)
    between =
        at::empty({here.logits_of.defined() ? 1 : here.tokens.size(0), num_tokens, vocab_size},
                  at::TensorOptions().dtype(at::kFloat).device(step_->device.device()));
  between = between.contiguous();
  group_.broadcast(between, last).wait();
  return between;
}

void Pipeline::start_round(const Batch& batch, const StepBatches& step,
                           const std::shared_ptr<AuxiliaryLosses>& auxiliary) {
  const Batch on_device = batch.to(step_->device.device());
  const int64_t num_rows = batch.tokens.size(0), rows = options_.microbatch_size;
  microbatches_.clear();
  for (int64_t first = 0; first < num_rows; first += rows) {
    Batch microbatch = on_device.rows(first, std::min(rows, num_rows - first));
    for (const BatchSplitter* splitter : step_->splitters) microbatch = splitter->split(microbatch);
    microbatch.auxiliary_losses = auxiliary;
    microbatches_.push_back(std::move(microbatch));
  }
  const int num_microbatches = static_cast<int>(microbatches_.size());
  for (Stage& stage : stages_) stage.start(num_microbatches);
  losses_.assign(static_cast<size_t>(num_microbatches), at::Tensor());
  num_valid_tokens_ = step.num_valid_tokens;
  gradient_scale_ = step.gradient_scale;
  links_->abandon();
}

void Pipeline::run(const PipelineAction& action) {
  const PhaseScope phase(*recorder_, phase_of(action.kind), action_text(action));
  try {
    Stage& stage = this->stage(action.stage);
    const int microbatch = action.microbatch;
    switch (action.kind) {
      case Kind::forward:
        run_forward(stage, microbatch);
        break;
      case Kind::backward:
      case Kind::input_grad:
        run_backward(stage, action);
        break;
      case Kind::weight_grad:
        stage.backward_weights(microbatch);
        break;
      case Kind::send_output:
        links_->send(action, stage.output(microbatch).contiguous());
        if (!at::GradMode::is_enabled()) stage.forget(microbatch);
        break;
      case Kind::send_grad:
        links_->send(action, stage.take_input_grad(microbatch).contiguous());
        break;
      case Kind::receive_input:
        links_->start_receive(action, empty_like_boundary(stage.input_boundary(
                                          microbatches_[static_cast<size_t>(microbatch)])));
        break;
      case Kind::receive_grad:
        links_->start_receive(action,
                              empty_like_boundary({stage.output(microbatch).sizes().vec(),
                                                   stage.output(microbatch).scalar_type()}));
        break;
    }
  } catch (Error& e) {
    e.with_context("in " + action_text(action));
    throw;
  } catch (const c10::Error& e) {  // from LibTorch: its message without the stack trace
    throw Error(ErrorKind::internal, e.what_without_backtrace())
        .with_context("in " + action_text(action));
  }
}

at::Tensor Pipeline::empty_like_boundary(const Boundary& boundary) const {
  return at::empty(boundary.shape,
                   at::TensorOptions().dtype(boundary.dtype).device(step_->device.device()));
}

void Pipeline::run_forward(Stage& stage, int microbatch) {
  at::Tensor input;
  if (!stage.is_first()) {
    const int before = stage.index() - 1;
    input = is_here(before) ? this->stage(before).output(microbatch)
                            : links_->take(Kind::receive_input, stage.index(), microbatch);
    if (is_here(before) && !at::GradMode::is_enabled()) this->stage(before).forget(microbatch);
  }
  const auto place = static_cast<size_t>(microbatch);
  stage.forward(microbatch, microbatches_[place], input, splits_);
  if (!stage.is_last()) return;
  losses_[place] = stage.output_with_history(microbatch) / static_cast<double>(num_valid_tokens_);
  if (!at::GradMode::is_enabled()) stage.forget(microbatch);
}

void Pipeline::run_backward(Stage& stage, const PipelineAction& action) {
  const int microbatch = action.microbatch;
  at::Tensor root = stage.output_with_history(microbatch), grad_output;
  if (stage.is_last()) {
    at::Tensor& loss = losses_[static_cast<size_t>(microbatch)];
    root = loss;
    loss = loss.detach();
    if (gradient_scale_ != 1) grad_output = at::full_like(loss, gradient_scale_);
  } else {
    const int after = stage.index() + 1;
    grad_output = is_here(after) ? this->stage(after).take_input_grad(microbatch)
                                 : links_->take(Kind::receive_grad, stage.index(), microbatch);
  }
  if (action.kind == Kind::input_grad)
    stage.backward_input(microbatch, root, grad_output);
  else
    stage.backward(microbatch, root, grad_output);
}

/// The sum of the round's losses on the rank of the last stage, 0 elsewhere. Adds in the order of
/// microbatches, whatever the schedule.
LossSum Pipeline::end_round() {
  links_->finish();
  LossSum total;
  for (const at::Tensor& loss : losses_)
    if (loss.defined()) total.add(loss);
  losses_.clear();
  return total;
}

}  // namespace titan::pipeline
