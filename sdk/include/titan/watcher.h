// Plugin kind `watcher`: observes the steps of a run, and may take part in them. Profiling, the
// search for NaN or infinite values and statistics of parameters are watchers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/logger.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/step.h>
#include <titan/tokenizer.h>
#include <titan/transform.h>

TITAN_OPTIONAL_HEADER(watcher);

namespace titan {

/// Sends numbers to the loggers of this rank, of which there may be none. Thread: trainer thread.
class TITAN_API WatcherLog {
 public:
  virtual ~WatcherLog();
  /// Logs a separate entry, in addition to the step's. Numbers of the step's own entry go into
  /// Step::scalars.
  virtual void log(int64_t step, std::span<const Scalar> scalars) = 0;
  virtual void log_histograms(int64_t step, std::span<const Histogram> histograms) = 0;
};

/// Inputs that the run gives to a watcher; references outlive it.
struct WatcherContext {
  const dist::Mesh& mesh;
  Device& device;  ///< meta: the run is simulated, and `match` is the last call
  WatcherLog& log;
  std::string dump_folder;  ///< [job] dump_folder; exists from `start` on
  /// Null if the job has no tokenizer, and in a simulated run without files. Outlives `match`.
  const Tokenizer* tokenizer = nullptr;
  /// Set in a run with loss scaling (float16). If gradients overflow at a
  /// StepBatches::gradient_scale larger than this, the step is skipped and a smaller scale is
  /// tried.
  std::optional<double> smallest_gradient_scale = {};
  /// [any thread, while the trainer thread hangs] Ends the run as after an error: tells the
  /// first line of `error` to the other ranks, writes the flight record and ends the process. Empty
  /// in a simulated run, and where no run is in progress. May be called until `finish`.
  std::function<void(const std::string& error)> end_run = {};
};

/// The state before the first step; references outlive the last one.
struct WatcherStart {
  ModelPart& part;
  Optimizer& optimizer;
  int64_t resumed_step = 0;  ///< the last completed step; 0 in a fresh run
  int64_t first_row = 0;     ///< the first row of the global batch that this rank trains on
  const Model& model;        ///< the whole model
  StepExecutor& executor;    ///< runs the part: logits, or a loss without gradients
};

/// Selected by [job] watchers, or by a key of the core that requires it; its options are in
/// [watcher.<name>]. Constructed on every rank of a training run, in the same order. The trainer
/// calls, in this order:
///
///   constructor -> match -> attach -> members, follower, wrapper -> start
///   -> before_step, report, validate, after_step of each step -> finish
///
/// `match`, `attach`, `start` and `validate` may communicate: all ranks call them together. Thread:
/// trainer thread.
class TITAN_API Watcher {
 public:
  static constexpr const char* kKind = "watcher";
  using Interface = Watcher;
  using Context = WatcherContext;

  virtual ~Watcher();

  /// [once, on the whole model, after converters, on meta] Resolves the options against the model.
  /// A config Error is reported at the option or key that its message names.
  virtual void match(ModelPart& whole);
  /// [once, after all transforms, before parameters have memory] Wraps modules of this rank's part.
  /// Modules that a parallelism or a backend has replaced no longer exist.
  virtual void attach(ModelPart& part);

  /// [once, after attach] Members of every step, owned by this watcher. They come before the
  /// trainer's own checks of loss and gradients. Each judges the same on all ranks
  /// (StepMember::judge).
  virtual std::vector<StepMember*> members();
  /// The same, but after the members of all plugins and right before gradients are clipped. Not
  /// used where the optimizer steps inside the backward, because no gradients are left.
  virtual std::vector<StepMember*> late_members();
  /// [once, after attach] An object whose functions the executor calls around each microbatch;
  /// null: none.
  virtual GradientReducer* follower();
  /// [once, after attach] A wrapper of the executor; null: none.
  virtual ExecutorWrapper* wrapper();
  /// [once, after attach] Whether it reads tensors while forward and backward run. A step that is
  /// replayed as a device graph (CUDA graph) runs no host code.
  virtual bool looks_into_layers() const { return true; }
  /// [once, after attach] Whether it reads loss, norm or gradients of steps that are not logged. If
  /// no watcher does, the host need not wait for a GPU in those steps.
  virtual bool reads_numbers() const { return true; }

  /// [once, when weights have their values and the run's folder exists] Opens files.
  virtual void start(const WatcherStart& start);
  /// [before each step] A step here includes loading data, the update, validation and saving.
  virtual void before_step(int64_t step);
  /// [after the update, once the step's own numbers are logged] For calls of WatcherLog::log.
  virtual void report(int64_t step);
  /// [after the update, before a checkpoint] Whether `validate` has work after this step. The same
  /// on all ranks.
  virtual bool validates(int64_t step) const;
  /// [after `validates` returned true] Evaluates the model in its current state; the time counts as
  /// validation.
  virtual void validate(int64_t step);
  /// [after each step, including validation and saving]
  virtual void after_step(int64_t step);
  /// [when a step threw] Other ranks may be elsewhere: no communication.
  virtual void failed(int64_t last_done_step) noexcept;
  /// [once, after the last step, or after `failed`] Closes files. `last_step`: the last step that
  /// began. No communication.
  virtual void finish(int64_t last_step) noexcept;
};

}  // namespace titan
