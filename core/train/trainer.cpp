#include "core/train/trainer.h"

#include <chrono>
#include <csignal>
#include <utility>

#include <titan/error.h>
#include <titan/host_collectives.h>
#include <titan/program/clock.h>
#include <titan/step_phase.h>

#include <titan/program/stop_signals.h>
#include "core/train/run_speed.h"
#include "core/train/step/step_tokens.h"

namespace titan::core {
namespace {

/// How long a save waits for loggers.
constexpr std::chrono::seconds kLogsBeforeSave(1);

/// The device on which ranks reduce numbers that the host needs at once.
c10::Device place_of_numbers(const Device& device) {
  return dynamic_cast<const HostCollectives*>(&device) ? c10::Device(c10::kCPU) : device.device();
}

MetricsOptions metrics_options(const Run& run, const JobConfig& config) {
  return {.log_freq = config.metrics.log_freq,
          .flops_per_token = run.model->flops_per_token(config.training.seq_len).full_attention,
          .peak_flops = peak_flops(run, config),
          .times_checkpoints = config.checkpoint.enable && !config.checkpoint.load_only,
          .replicas = run.replicas};
}

/// Closes the loggers however the run ends.
class LoggerCloser {
 public:
  explicit LoggerCloser(LoggerSet& loggers) : loggers_(loggers) {}
  ~LoggerCloser() { loggers_.finish(outcome); }
  LoggerCloser(const LoggerCloser&) = delete;
  RunOutcome outcome = RunOutcome::failed;

 private:
  LoggerSet& loggers_;
};

/// Calls the watchers' finish however the loop ends.
class WatcherCloser {
 public:
  explicit WatcherCloser(WatcherSet& watchers) : watchers_(watchers) {}
  ~WatcherCloser() { watchers_.finish(); }
  WatcherCloser(const WatcherCloser&) = delete;

 private:
  WatcherSet& watchers_;
};

}  // namespace

Trainer::Trainer(Run& run, const JobConfig& config, FailureWatch& watch, double begin,
                 StepSource source)
    : run_(run),
      steps_(config.training.steps),
      train_timeout_(config.comm.train_timeout_seconds),
      watch_(watch),
      step_(run.state.step),
      journal_(run, config, begin),
      epochs_(*run.loader, run.mesh),
      metrics_(metrics_options(run, config), run.mesh, *run.device, *run.loss_parts, run.loggers,
               journal_),
      members_(
          run, config, [this] { wait_for_checkpoint(); }, &metrics_),
      runner_(*run.part, *run.executor, members_.order(), run.mesh.group("world"),
              run.device->device()),
      source_(std::move(source)) {
  runner_.on_undone(
      [this](const Step& step, const Judgement& judgement) { journal_.undone(step, judgement); });
}

StopReason Trainer::run() {
  LoggerCloser closer(run_.loggers);
  try {
    {
      const WatcherCloser watchers(run_.watchers);
      while (has_next_step()) {
        step_ = run_.state.step + 1;
        run_.watchers.step(step_, [this] { take_step(); });
      }
    }
    const StopReason reason = stop();
    closer.outcome =
        reason == StopReason::all_steps_done ? RunOutcome::finished : RunOutcome::stopped;
    end_journal(closer.outcome, "");
    return reason;
  } catch (Error& e) {
    end_failed(e.message());
    e.with_context("in training step " + std::to_string(step_));
    throw;
  } catch (const c10::Error& e) {  // of LibTorch: its message without the stack of addresses
    end_failed(e.what_without_backtrace());
    throw Error(ErrorKind::internal, e.what_without_backtrace())
        .with_context("in training step " + std::to_string(step_));
  }
}

bool Trainer::has_next_step() {
  for (;;) {
    if (run_.state.step >= steps_ || should_stop()) return false;
    if (!run_.replicas) return true;
    const PhaseScope phase(run_.mesh.recorder(), StepPhase::replicas, "finding replica groups");
    // takes over the state of a later step if the other groups are ahead
    if (run_.replicas->between_steps() && run_.state.step < steps_) return true;
  }
}

void Trainer::end_journal(RunOutcome outcome, const std::string& error) {
  metrics_.finish(run_.state.step);
  journal_.end(run_.state.step, outcome, error);
}

void Trainer::end_failed(const std::string& error) {
  if (run_.replicas) run_.replicas->failed();
  end_journal(RunOutcome::failed, error);
}

/// The step with its logging, validation and checkpoint.
void Trainer::take_step() {
  watch_.set_step(step_);
  if (!train_step()) return;
  if (!std::exchange(is_warm_, true)) shorten_timeouts();
  validate();
  save();
}

/// Finishes the work in flight; a run that is stopped before its last step is saved.
StopReason Trainer::stop() {
  const int signal = run_.state.step < steps_ ? stop_signal_ : 0;
  if (signal != 0) members_.require_finite();
  if (!metrics_.is_due(run_.state.step))
    epochs_.count(run_.state.step, place_of_numbers(*run_.device));
  const bool is_saved = signal != 0 && run_.checkpoints->save_now(run_.state);
  run_.checkpoints->finish();
  if (signal == 0) return StopReason::all_steps_done;
  if (is_saved) return StopReason::saved;
  return run_.checkpoints->is_on() ? StopReason::saved_by_others : StopReason::stopped;
}

void Trainer::validate() {
  const int64_t step = run_.state.step;
  const bool validates = run_.validator && run_.validator->is_due(step);
  const bool watchers_validate = run_.watchers.validate_after(step);
  if (!validates && !watchers_validate) return;
  const double begin = monotonic_seconds();
  const PhaseScope phase(run_.mesh.recorder(), StepPhase::validation, "validation");
  if (validates) run_.validator->run(step);
  if (watchers_validate) run_.watchers.validate(step);
  journal_.validated(step, monotonic_seconds() - begin);
}

void Trainer::save() {
  const PhaseScope phase(run_.mesh.recorder(), StepPhase::checkpoint, "checkpoint");
  const double begin = monotonic_seconds();
  // a run that resumes from this step does not log it again
  if (run_.checkpoints->saves_after(run_.state.step)) run_.loggers.flush_within(kLogsBeforeSave);
  if (run_.checkpoints->after_step(run_.state))
    journal_.saved(run_.state.step, monotonic_seconds() - begin);
}

/// Whether any rank was asked to stop: all ranks stop after the same step.
bool Trainer::should_stop() {
  stop_signal_ = static_cast<int>(run_.mesh.group("world").all_reduce(
      int64_t{StopSignals::received()}, dist::Reduce::max, place_of_numbers(*run_.device)));
  return stop_signal_ != 0;
}

/// The first step may compile, connect and warm up; from the second on, a rank that does not arrive
/// in time is lost.
void Trainer::shorten_timeouts() {
  run_.mesh.group("world").barrier();
  run_.mesh.set_timeout(train_timeout_);
}

/// False if the step is to be begun anew.
bool Trainer::train_step() {
  journal_.begin_step(step_, metrics_.is_due(step_));
  Step step = next_step();
  if (runner_.run(step) == Verdict::restart) return false;
  journal_.end_step(step_);
  count_epochs(step);
  step.scalars.insert(step.scalars.end(), source_scalars_.begin(), source_scalars_.end());
  metrics_.record(step, run_.state, run_.optimizer->lr() * step.lr_factor);
  run_.watchers.report(step_);
  run_.loggers.step_done({.step = step_, .time = monotonic_seconds()});
  return true;
}

/// Each row's position in the data is known now, whatever the verdict of the step.
void Trainer::count_epochs(Step& step) {
  if (!metrics_.is_due(step_)) return;
  const auto epochs = epochs_.count(step_, place_of_numbers(*run_.device));
  step.scalars.insert(step.scalars.end(), epochs.begin(), epochs.end());
}

Step Trainer::next_step() {
  Step step{.number = step_};
  {
    const PhaseScope phase(run_.mesh.recorder(), StepPhase::data, "data loading");
    SourcedStep sourced = source_(step_);
    step.batches = std::move(sourced.batches);
    source_scalars_ = std::move(sourced.scalars);
  }
  count_tokens(step.batches, {&run_.mesh.group("dp"), &run_.mesh.replicas()},
               place_of_numbers(*run_.device));
  TITAN_CHECK(step.batches.num_valid_tokens > 0, data, "no token of step ", step_,
              " has a target, on any rank, so there is nothing to learn; look at the data of this "
              "step");
  return step;
}

/// Called before weights change: waits until the checkpoint has copied them.
void Trainer::wait_for_checkpoint() {
  const PhaseScope phase(run_.mesh.recorder(), StepPhase::checkpoint, "checkpoint");
  run_.checkpoints->before_update();
}

}  // namespace titan::core
