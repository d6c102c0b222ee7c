#include "core/train/trainer.h"

#include <csignal>
#include <utility>

#include <titan/error.h>

#include "core/base/clock.h"
#include "core/runtime/signals.h"

namespace titan::core {
namespace {

MetricsOptions metrics_options(const Run& run, const JobConfig& config) {
  auto peak = config.metrics.peak_flops;
  if (!peak) peak = run.device->peak_flops(at::kFloat);
  return {.log_freq = config.metrics.log_freq,
          .flops_per_token = run.model->flops_per_token(config.training.seq_len).full_attention,
          .peak_flops = peak,
          .times_checkpoints = config.checkpoint.enable && !config.checkpoint.load_only};
}

/// Closes the loggers whichever way the run ends.
class LoggerCloser {
 public:
  explicit LoggerCloser(LoggerSet& loggers) : loggers_(loggers) {}
  ~LoggerCloser() { loggers_.finish(outcome); }
  LoggerCloser(const LoggerCloser&) = delete;
  RunOutcome outcome = RunOutcome::failed;

 private:
  LoggerSet& loggers_;
};

}  // namespace

Trainer::Trainer(Run& run, const JobConfig& config, FailureWatch& watch)
    : run_(run),
      steps_(config.training.steps),
      train_timeout_(config.comm.train_timeout_seconds),
      watch_(watch),
      step_(run.state.step),
      metrics_(metrics_options(run, config), run.mesh, *run.device, *run.loss_parts, run.loggers),
      members_(run, config.training.max_norm, [this] { wait_for_checkpoint(); }),
      runner_(*run.part, *run.executor, members_.order(), run.mesh.group("world"),
              run.device->device()) {}

StopReason Trainer::run() {
  LoggerCloser closer(run_.loggers);
  try {
    while (run_.state.step < steps_ && !should_stop()) {
      step_ = run_.state.step + 1;
      watch_.set_step(step_);
      train_step();
      if (!std::exchange(is_warm_, true)) shorten_timeouts();
      validate();
      save();
    }
    const StopReason reason = stop();
    closer.outcome =
        reason == StopReason::all_steps_done ? RunOutcome::finished : RunOutcome::stopped;
    return reason;
  } catch (Error& e) {
    e.with_context("in training step " + std::to_string(step_));
    throw;
  } catch (const c10::Error& e) {  // of LibTorch: its message without the stack of addresses
    throw Error(ErrorKind::internal, e.what_without_backtrace())
        .with_context("in training step " + std::to_string(step_));
  }
}

/// What is under way is brought to its end; a run that is to go on later is saved.
StopReason Trainer::stop() {
  const int signal = run_.state.step < steps_ ? stop_signal_ : 0;
  const bool goes_on = signal == SIGTERM || signal == SIGUSR1;
  const bool is_saved = goes_on && run_.checkpoints->save_now(run_.state);
  run_.checkpoints->finish();
  if (signal == 0) return StopReason::all_steps_done;
  if (!goes_on) return StopReason::interrupted;
  return is_saved ? StopReason::saved : StopReason::terminated;
}

void Trainer::validate() {
  if (!run_.validator || !run_.validator->is_due(run_.state.step)) return;
  const double begin = monotonic_seconds();
  run_.validator->run(run_.state.step);
  metrics_.leave_out(monotonic_seconds() - begin);
}

void Trainer::save() {
  ScopedTimer timer(metrics_.checkpoint_seconds());
  run_.checkpoints->after_step(run_.state);
}

/// Whether any rank was asked to stop: all end after the same step.
bool Trainer::should_stop() {
  stop_signal_ = static_cast<int>(run_.mesh.group("world").all_reduce(
      int64_t{StopSignals::received()}, dist::Reduce::max, run_.device->device()));
  return stop_signal_ != 0;
}

/// The first step may compile, connect and warm up; from the second on a rank that does not come is
/// lost.
void Trainer::shorten_timeouts() {
  run_.mesh.group("world").barrier();
  run_.mesh.set_timeout(train_timeout_);
}

void Trainer::train_step() {
  Step step = next_step();
  runner_.run(step);
  metrics_.record(step, run_.state.tokens_seen, run_.optimizer->lr() * step.lr_factor);
  if (run_.observations)
    run_.observations->log(run_.loggers, run_.mesh.group("world"), run_.device->device());
}

Step Trainer::next_step() {
  Step step{.number = step_};
  {
    ScopedTimer timer(metrics_.data_loading_seconds());
    step.batches = run_.loader->next_step();
  }
  step.batches.num_valid_tokens = run_.mesh.group("dp").all_reduce(
      step.batches.num_local_valid_tokens, dist::Reduce::sum, run_.device->device());
  return step;
}

/// Nothing changes what is still being copied.
void Trainer::wait_for_checkpoint() {
  ScopedTimer timer(metrics_.checkpoint_seconds());
  run_.checkpoints->before_update();
}

}  // namespace titan::core
