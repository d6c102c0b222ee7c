#include "core/train/trainer.h"

#include <cmath>
#include <csignal>
#include <optional>
#include <utility>

#include <titan/error.h>

#include "core/runtime/clock.h"
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
      max_norm_(config.training.max_norm),
      train_timeout_(config.comm.train_timeout_seconds),
      watch_(watch),
      metrics_(metrics_options(run, config), run.mesh, *run.device, run.loggers) {}

StopReason Trainer::run() {
  LoggerCloser closer(run_.loggers);
  try {
    while (run_.state.step < steps_ && !should_stop()) {
      watch_.set_step(++run_.state.step);
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
    e.with_context("in training step " + std::to_string(run_.state.step));
    throw;
  } catch (const c10::Error& e) {  // of LibTorch: its message without the stack of addresses
    throw Error(ErrorKind::internal, e.what_without_backtrace())
        .with_context("in training step " + std::to_string(run_.state.step));
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
  StepBatches batches;
  {
    ScopedTimer timer(metrics_.data_loading_seconds());
    batches = run_.loader->next_step();
  }
  batches.num_valid_tokens = run_.mesh.group("dp").all_reduce(
      batches.num_local_valid_tokens, dist::Reduce::sum, run_.device->device());

  if (run_.fingerprints) run_.fingerprints->record_tokens(run_.state.step, batches, run_.first_row);

  const double lr_factor = run_.lr_scheduler->factor(++run_.state.lr_step);
  if (run_.early_optimizer) {
    wait_for_checkpoint();
    run_.early_optimizer->start_step(lr_factor);
  }
  batches.gradient_scale = run_.loss_scaler->scale();
  const StepLoss loss = run_.executor->forward_backward(batches);
  const GradientNorm norm = run_.early_optimizer
                                ? GradientNorm()
                                : clip_gradients(*run_.part, run_.mesh, run_.device->device(),
                                                 max_norm_, batches.gradient_scale);
  require_finite(loss);
  if (run_.loss_scaler->takes(norm)) {
    require_finite(norm, loss);
    wait_for_checkpoint();
    run_.optimizer->step(lr_factor);
    for (AfterOptimizerStep* work : run_.after_optimizer_step) work->after_optimizer_step();
  }
  run_.part->clear_gradients();

  run_.state.tokens_seen += batches.num_valid_tokens;
  metrics_.record(
      run_.state.step, run_.state.tokens_seen, batches, loss, norm,
      run_.optimizer->lr() * lr_factor,
      run_.loss_scaler->is_active() ? std::optional(batches.gradient_scale) : std::nullopt);
}

/// Nothing changes what is still being copied.
void Trainer::wait_for_checkpoint() {
  ScopedTimer timer(metrics_.checkpoint_seconds());
  run_.checkpoints->before_update();
}

void Trainer::require_finite(const StepLoss& loss) const {
  TITAN_CHECK(
      std::isfinite(loss.normalized_sum), data, "the loss is ", loss.normalized_sum,
      run_.early_optimizer ? "" : "; the weights were not changed by this step",
      ". Lower optimizer.lr, lengthen lr_scheduler.warmup_steps or look at the data of this "
      "step");
}

void Trainer::require_finite(const GradientNorm& norm, const StepLoss& loss) const {
  TITAN_CHECK(!norm.is_known || std::isfinite(norm.value), data, "the gradient norm is ",
              norm.value, " at loss ", loss.normalized_sum,
              "; the weights were not changed by this step. Lower optimizer.lr or lengthen "
              "lr_scheduler.warmup_steps");
}

}  // namespace titan::core
