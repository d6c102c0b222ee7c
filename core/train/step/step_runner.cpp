#include "core/train/step/step_runner.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/step_phase.h>

namespace titan::core {

StepRunner::StepRunner(ModelPart& part, StepExecutor& executor, const StepOrder& order,
                       const dist::Group& world, c10::Device device)
    : part_(part), executor_(executor), order_(order), world_(world), device_(device) {
  for (const auto* members : {&order.first, &order.plugins, &order.last})
    all_.insert(all_.end(), members->begin(), members->end());
  has_votes_ = std::any_of(order.plugins.begin(), order.plugins.end(),
                           [](const StepMember* member) { return member->undoes_steps(); });
}

Verdict StepRunner::run(Step& step) {
  for (step.attempt = 1;; ++step.attempt) {
    const Judgement judgement = attempt(step);
    if (!judgement.reason.empty()) log::info(judgement.reason);
    if (judgement.verdict != Verdict::commit && on_undone_) on_undone_(step, judgement);
    const PhaseScope phase(world_.recorder(), StepPhase::optimizer, "optimizer step");
    settle(judgement, step);
    part_.clear_gradients();
    if (judgement.verdict != Verdict::repeat) return judgement.verdict;
  }
}

Judgement StepRunner::attempt(Step& step) {
  try {
    begin(step);
    step.loss = executor_.forward_backward(step.batches);
    const PhaseScope phase(world_.recorder(), StepPhase::optimizer, "gradient clipping");
    for (StepMember* member : all_) member->reduced(step);
    return judge(step);
  } catch (...) {
    abandon(step);
    throw;
  }
}

/// Errors of members meanwhile are only logged: they would hide the error that is being thrown.
void StepRunner::abandon(const Step& step) noexcept {
  for (size_t i = 0; i < num_begun_; ++i) {
    try {
      all_[i]->abort(step);
    } catch (const std::exception& error) {
      log::warn(std::string("while a failed step was undone: ") + error.what());
    } catch (...) {
      log::warn("while a failed step was undone: an exception of unknown type");
    }
  }
}

/// Resets the results of an earlier attempt.
void StepRunner::begin(Step& step) {
  step.lr_factor = step.batches.gradient_scale = 1;
  step.loss = {};
  step.norm.reset();
  step.scalars.clear();
  num_begun_ = 0;
  for (StepMember* member : all_) {
    ++num_begun_;  // a member that fails half-way also has state to undo
    member->begin(step);
  }
}

Judgement StepRunner::judge(const Step& step) const {
  Judgement judgement = judge_by_plugins(step);
  if (order_.replicas) {
    const PhaseScope phase(world_.recorder(), StepPhase::replicas, "votes of replica groups");
    judgement = order_.replicas->agree(step, std::move(judgement));
  }
  for (const auto* members : {&order_.first, &order_.last})
    for (StepMember* member : *members)
      if (judgement.verdict == Verdict::commit) judgement = member->judge(step);
  return judgement;
}

/// One reduction finds the greatest verdict and the first rank that gives it, which logs the
/// reason.
Judgement StepRunner::judge_by_plugins(const Step& step) const {
  Judgement greatest;
  for (StepMember* member : order_.plugins) {
    Judgement judgement = member->judge(step);
    TITAN_CHECK(judgement.verdict == Verdict::commit || member->undoes_steps(), plugin,
                "a step member whose undoes_steps() is false asked to skip or repeat the step: ",
                judgement.reason, "; let its undoes_steps() return true");
    if (judgement.verdict > greatest.verdict) greatest = std::move(judgement);
  }
  if (!has_votes_) return greatest;
  const int64_t size = world_.size();
  const int64_t vote = static_cast<int64_t>(greatest.verdict) * size + (size - 1 - world_.rank());
  const int64_t decisive = world_.all_reduce(vote, dist::Reduce::max, device_);
  if (decisive != vote) greatest = {.verdict = static_cast<Verdict>(decisive / size), .reason = ""};
  return greatest;
}

void StepRunner::settle(const Judgement& judgement, const Step& step) {
  switch (judgement.verdict) {
    case Verdict::commit:
      for (StepMember* member : all_) member->commit(step);
      return;
    case Verdict::skip:
      for (StepMember* member : all_) member->skip(step);
      return;
    case Verdict::restart:
      for (StepMember* member : all_) member->abort(step);
      return;
    case Verdict::repeat:
      for (StepMember* member : all_) member->abort(step);
      TITAN_CHECK(step.attempt < kMostAttempts, data, "step ", step.number, " was run ",
                  step.attempt, " times and is to be repeated again: ", judgement.reason,
                  "; leave out the plugin that asks for it, or look at the data of this step");
      return;
  }
}

}  // namespace titan::core
