#include "core/train/journal.h"

#include <unistd.h>

#include <filesystem>

#include <c10/core/ScalarType.h>

#include <titan/program/clock.h>
#include <titan/program/host.h>

#include "core/runtime/build_info.h"
#include "core/train/assembly/run.h"
#include "core/train/assembly/run_dtypes.h"
#include "core/train/run_speed.h"

namespace titan::core {
namespace {

/// Adds the members that describe this process.
Value with_process(Value members, const Run& run, const JobConfig& config) {
  members["world_size"] = run.mesh.grid().world_size();
  members["host"] = host_name();
  members["pid"] = static_cast<int64_t>(::getpid());
  members["steps"] = config.training.steps;
  return members;
}

Value start_event(const Run& run, const JobConfig& config) {
  Value event = with_process(Value::map(), run, config);
  event["resumed_step"] = run.state.step;
  event["titan"] = build_summary();
  event["device"] = run.device->description();
  event["parameters"] = run.part->num_parameters();
  event["tokens_per_step"] = config.layout.global_batch_size * config.training.seq_len;
  const Flops flops = run.model->flops_per_token(config.training.seq_len);
  event["flops_per_token"] =
      Value::map({{"full_attention", flops.full_attention}, {"causal_half", flops.causal_half}});
  event["compute_dtype"] = c10::getDtypeNames(compute_dtype(config)).first;
  if (const std::optional<double> peak = peak_flops(run, config)) event["peak_flops"] = *peak;
  if (!run.unlisted_plugins.empty()) {
    event["unsigned_plugins"] = Value::list();
    for (const std::string& plugin : run.unlisted_plugins)
      event["unsigned_plugins"].as_list().emplace_back(plugin);
  }
  event["config"] = config.resolved;
  return event;
}

const char* name_of(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::finished:
      return "finished";
    case RunOutcome::stopped:
      return "stopped";
    case RunOutcome::failed:
      return "failed";
  }
  return "failed";
}

}  // namespace

Value as_value(const StepClock::Seconds& seconds) {
  Value value = Value::map();
  for (size_t phase = 0; phase < kNumPhases; ++phase)
    value[titan::name_of(static_cast<StepPhase>(phase))] = seconds[phase];
  return value;
}

Journal::Journal(const Run& run, const JobConfig& config, double begin) {
  const std::filesystem::path folder = config.job.dump_folder;
  const int rank = run.mesh.rank();
  const std::string name = "rank_" + std::to_string(rank);
  if (rank == 0) history_.emplace(folder, start_event(run, config), begin);
  status_.emplace(folder / "status" / (name + ".json"),
                  with_process(Value::map({{"rank", rank}}), run, config), run.mesh);
  status_->set_step(run.state.step, 0);
  timeline_.emplace(
      folder / "timeline" / (name + ".jsonl"), run.state.step > 0, run.mesh.recorder(),
      PlannedPipeline{config.pipeline_plan.get(), config.parallelism.pipeline_parallel_schedule,
                      run.mesh.group("pp").rank()});
}

void Journal::begin_step(int64_t step, bool is_logged) {
  if (!status_) return;
  numbers_.step = step;
  step_began_ = monotonic_seconds();
  status_->set_step(step, numbers_.step_seconds);
  timeline_->begin_step(step, is_logged);
}

void Journal::end_step(int64_t step) {
  if (!status_) return;
  numbers_.step_seconds = monotonic_seconds() - step_began_;
  timeline_->end_step();
  if (history_ && is_first_) history_->first_step(step);
  is_first_ = false;
}

void Journal::logged(const LoggedInterval& interval) {
  if (history_) history_->steps(interval.from, interval.to, as_value(interval.seconds));
  if (!status_) return;
  StepClock::Seconds per_step = interval.seconds;
  for (double& seconds : per_step) seconds /= static_cast<double>(interval.to - interval.from + 1);
  numbers_.tokens_per_second = interval.tokens_per_second;
  numbers_.loss = interval.loss;
  numbers_.memory_bytes = interval.memory_bytes;
  numbers_.memory_total = interval.memory_total;
  numbers_.seconds = as_value(per_step);
  numbers_.has_logged = true;
  status_->set(numbers_);
}

void Journal::ended_unlogged(int64_t from, int64_t to, const StepClock::Seconds& seconds) {
  if (history_) history_->steps(from, to, as_value(seconds));
}

void Journal::undone(const Step& step, const Judgement& judgement) {
  if (history_)
    history_->undone(step.number, step.attempt,
                     judgement.verdict == Verdict::skip ? "skip" : "repeat", judgement.reason);
}

void Journal::validated(int64_t step, double seconds) {
  if (history_) history_->validation(step, seconds);
}

void Journal::saved(int64_t step, double held_seconds) {
  if (history_) history_->checkpoint(step, held_seconds);
}

void Journal::end(int64_t step, RunOutcome outcome, const std::string& error) {
  if (history_) history_->end(step, name_of(outcome), error);
  status_.reset();
}

std::optional<double> Journal::goodput() const {
  if (!history_) return std::nullopt;
  return history_->goodput();
}

}  // namespace titan::core
