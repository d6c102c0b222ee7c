// Plugin kind `watcher`: looks at the steps of a run, and may take part in them. Profiling, the
// search for bad values and statistics of parameters are watchers.
#pragma once

#include <cstdint>
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

/// Hands numbers to the loggers of the run, of which a rank has none or several. Thread: trainer
/// thread.
class TITAN_API WatcherLog {
 public:
  virtual ~WatcherLog();
  /// An entry of its own, beside the step's. Numbers that belong to the step's entry go into
  /// Step::scalars.
  virtual void log(int64_t step, std::span<const Scalar> scalars) = 0;
  virtual void log_histograms(int64_t step, std::span<const Histogram> histograms) = 0;
};

/// What the run lends to a watcher; references outlive it.
struct WatcherContext {
  const dist::Mesh& mesh;
  Device& device;  ///< on the meta device the run is simulated: `match` is the last call
  WatcherLog& log;
  std::string dump_folder;  ///< [job] dump_folder; exists from `start` on
  /// Null where the job has none, and in a simulated run that reads no files. Outlives `match`.
  const Tokenizer* tokenizer = nullptr;
  /// Of a run whose loss is scaled (float16): gradients that overflow at a larger
  /// StepBatches::gradient_scale than this are skipped, and a smaller scale is tried.
  std::optional<double> smallest_gradient_scale = {};
};

/// What there is before the first step; references outlive the last one.
struct WatcherStart {
  ModelPart& part;
  Optimizer& optimizer;
  int64_t resumed_step = 0;  ///< the last step that is done; 0 in a fresh run
  int64_t first_row = 0;     ///< the first row of the global batch that this rank trains on
  const Model& model;        ///< the whole one
  StepExecutor& executor;    ///< runs the part: logits, and a loss without gradients
};

/// Chosen by [job] watchers, or by the key of the core that asks for it; its options stand in
/// [watcher.<name>]. Made on every rank of a training run, in the same order. The trainer calls, in
/// this order:
///
///   constructor -> match -> attach -> members, follower, wrapper -> start
///   -> before_step, report, validate, after_step of each step -> finish
///
/// Calls of `match`, `attach`, `start` and `validate` may communicate: all ranks make them
/// together. Thread: trainer thread.
class TITAN_API Watcher {
 public:
  static constexpr const char* kKind = "watcher";
  using Interface = Watcher;
  using Context = WatcherContext;

  virtual ~Watcher();

  /// [once, on the whole model, after converters, on meta] Finds what the options ask for. A config
  /// Error is reported at the option or key that its message names.
  virtual void match(ModelPart& whole);
  /// [once, after all transforms, before parameters have memory] Goes around modules of this rank's
  /// part. Modules that a parallelism or a backend has replaced are not there any more.
  virtual void attach(ModelPart& part);

  /// [once, after attach] Members of every step, which this owns. They come before the trainer's
  /// own checks of loss and gradients. Each judges the same on all ranks (StepMember::judge).
  virtual std::vector<StepMember*> members();
  /// Likewise, but after the members of all plugins and right before gradients are clipped. Not
  /// called where the optimizer steps inside the backward, which leaves no gradients.
  virtual std::vector<StepMember*> late_members();
  /// [once, after attach] Is told of every run of the microbatches; null: nothing.
  virtual GradientReducer* follower();
  /// [once, after attach] Goes around whatever runs the microbatches; null: nothing.
  virtual ExecutorWrapper* wrapper();
  /// [once, after attach] Whether it looks at tensors while forward and backward run. A step that
  /// is replayed as a graph of the device calls no code of the host.
  virtual bool looks_into_layers() const { return true; }
  /// [once, after attach] Whether it reads loss, norm or gradients of steps that are not logged.
  /// Otherwise a GPU need not wait for the host.
  virtual bool reads_numbers() const { return true; }

  /// [once, when weights have their values and the run's folder is there] Opens files.
  virtual void start(const WatcherStart& start);
  /// [before each step] Of all that belongs to it: its data, its update, validation, saving.
  virtual void before_step(int64_t step);
  /// [after the update, when the step's own numbers were logged] For WatcherLog::log.
  virtual void report(int64_t step);
  /// [after the update, before a checkpoint] Whether `validate` has work after this step. The same
  /// on all ranks.
  virtual bool validates(int64_t step) const;
  /// [after `validates`, where that is true] Measures the model as it is; its time counts as
  /// validation.
  virtual void validate(int64_t step);
  /// [after each step and all that belongs to it]
  virtual void after_step(int64_t step);
  /// [when a step or what belongs to it threw] Other ranks may be elsewhere: no communication.
  virtual void failed(int64_t last_done_step) noexcept;
  /// [once, after the last step, or after `failed`] Closes files. `last_step`: the last one that
  /// was begun. No communication.
  virtual void finish(int64_t last_step) noexcept;
};

}  // namespace titan
