// Plugin kind `logger`: writes the metrics of a run to a file, terminal or server. No torch.
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

/// Histogram of the values of one tensor.
struct Histogram {
  std::string_view tag;
  std::vector<double> edges;   ///< ascending; value v is in bin i if edges[i] <= v < edges[i + 1]
  std::vector<double> counts;  ///< one entry fewer than edges
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

/// A finished step.
struct StepProgress {
  int64_t step = 0;
  double time = 0;  ///< when it finished, in seconds of a monotonic clock
};

enum class RunOutcome { finished, stopped, failed };

struct LoggerContext {
  bool is_terminal = false;               ///< standard output is a terminal
  bool disable_color = false;             ///< by a key, NO_COLOR, or an output without colors
  bool can_redraw = false;                ///< the terminal can redraw its current line
  int columns = 0;                        ///< COLUMNS; 0 = not set
  std::string tensorboard_folder = "tb";  ///< [metrics] save_tb_folder
};

class TensorObserver;  // titan/observe.h, which includes torch

/// Constructed on the trainer thread. All later calls come on a thread of the logger's own, one at
/// a time, in the order of the run. The values may have been measured a while before. If a call
/// throws titan::Error, the run warns once, drops this logger and continues. If the logger falls
/// behind or a call blocks, the run warns once and drops entries; at the end of the process it
/// waits no longer than finish_seconds().
///
/// `observe` of a TensorObserver is called on the trainer thread, possibly while another call is in
/// progress: data that both use needs a lock.
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
  /// [at logged steps for which a component recorded histograms] The default ignores them.
  virtual void log_histograms(int64_t step, std::span<const Histogram> histograms);
  /// [once] Whether `step_done` is called. The default is false.
  virtual bool follows_steps() const;
  /// [after each step] If several steps finished since the last call, only the latest is reported,
  /// after everything that was logged until then.
  virtual void step_done(const StepProgress& progress);
  /// [once] Seconds that `finish` may take; 10 by default. The end of the run waits for the longest
  /// of all loggers.
  virtual double finish_seconds() const;
  /// [once, also after an error] Flushes and closes. Must not throw.
  virtual void finish(RunOutcome outcome) noexcept = 0;

  /// [in log and log_histograms] When the run logged these values, in seconds since 1970.
  double log_time() const;
  /// [before log and log_histograms, by their caller]
  void set_log_time(double seconds) { log_time_ = seconds; }

 private:
  double log_time_ = 0;  // 0: not set, log_time() is now
};

}  // namespace titan
