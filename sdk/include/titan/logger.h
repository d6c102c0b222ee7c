// Plugin kind `logger`: where the numbers of a run go. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// One measured number. Tags are those of torchtitan v0.2.2 ("loss_metrics/global_avg_loss",
/// "grad_norm", ...).
struct Scalar {
  std::string_view tag;
  double value = 0;
};

/// How many values of one tensor lie where.
struct Histogram {
  std::string_view tag;
  std::vector<double> edges;   ///< rising; value v is in bin i where edges[i] <= v < edges[i + 1]
  std::vector<double> counts;  ///< one less than edges
};

/// What a logger may know about the run when it starts.
struct RunInfo {
  std::filesystem::path dump_folder;  ///< root of every output path; exists
  std::string description;            ///< [job] description
  Value config;                       ///< the resolved configuration, a map of sections
  int64_t resumed_step = 0;           ///< the last step already done; 0 = a fresh run
  int rank = 0;
  int world_size = 1;
  double start_time = 0;        ///< seconds since 1970
  int64_t num_steps = 0;        ///< [training] steps: the last one
  int64_t tokens_per_step = 0;  ///< of all ranks
  int64_t num_parameters = 0;   ///< of the whole model
};

/// A step that is done.
struct StepProgress {
  int64_t step = 0;
  double time = 0;  ///< when, in seconds of a clock that never jumps
};

enum class RunOutcome { finished, stopped, failed };

struct LoggerContext {
  bool is_terminal = false;               ///< standard output is a terminal: colours are welcome
  bool disable_color = false;             ///< [metrics] disable_color_printing, or NO_COLOR is set
  bool can_redraw = false;                ///< a terminal that can go back in its line
  int columns = 0;                        ///< COLUMNS; 0 = not set
  std::string tensorboard_folder = "tb";  ///< [metrics] save_tb_folder
};

class TensorObserver;  // titan/observe.h, which sees torch

/// Made on the trainer thread; from then on called on a thread of its own, one call after the
/// other, in the order of the run. What it is given may have been measured a while ago. May throw
/// titan::Error: the run warns once, drops this logger and goes on. So it does when calls come
/// faster than they return, or one does not return: some are left out then, and the end of the
/// process does not wait for it. Of a TensorObserver `observe` is called on the trainer thread all
/// the same, while these may be under way: what both use needs a lock.
class TITAN_API Logger {
 public:
  static constexpr const char* kKind = "logger";
  using Interface = Logger;
  using Context = LoggerContext;
  template <class T>
  static std::vector<std::string> abilities() {
    if constexpr (std::is_base_of_v<TensorObserver, T>)
      return {"TensorObserver"};
    else
      return {};
  }

  virtual ~Logger();

  /// [once, before the first step]
  virtual void start(const RunInfo& run) = 0;
  /// [at each logged step, in order of steps]
  virtual void log(int64_t step, std::span<const Scalar> scalars) = 0;
  /// [at logged steps for which somebody asked for them] Ignored by loggers that have no place for
  /// it.
  virtual void log_histograms(int64_t step, std::span<const Histogram> histograms);
  /// [once] Whether `step_done` is called: it wakes the thread at every step.
  virtual bool follows_steps() const;
  /// [after each step] When several came since the last call, only the latest is told, and after
  /// what was logged until then.
  virtual void step_done(const StepProgress& progress);
  /// [once] Seconds that `finish` may take. The end of the run waits for the longest of all
  /// loggers.
  virtual double finish_seconds() const;
  /// [once, also after an error] Flushes and closes. Must not throw.
  virtual void finish(RunOutcome outcome) noexcept = 0;

  /// [in log and log_histograms] When the run said that, in seconds since 1970; it may be a while
  /// ago.
  double log_time() const;
  /// By whoever calls these, before.
  void set_log_time(double seconds) { log_time_ = seconds; }

 private:
  double log_time_ = 0;  // 0: nobody told, it is now
};

}  // namespace titan
