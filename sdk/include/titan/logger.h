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

/// What a logger may know about the run when it starts.
struct RunInfo {
  std::filesystem::path dump_folder;  ///< root of every output path; exists
  std::string description;            ///< [job] description
  Value config;                       ///< the resolved configuration, a map of sections
  int64_t resumed_step = 0;           ///< the last step already done; 0 = a fresh run
  int rank = 0;
  int world_size = 1;
  double start_time = 0;  ///< seconds since 1970
};

enum class RunOutcome { finished, stopped, failed };

struct LoggerContext {
  bool is_terminal = false;               ///< standard output is a terminal: colours are welcome
  bool disable_color = false;             ///< [metrics] disable_color_printing
  std::string tensorboard_folder = "tb";  ///< [metrics] save_tb_folder
};

class TensorObserver;  // titan/observe.h, which sees torch

/// Called on the trainer thread only. May throw titan::Error: the run warns once, drops this logger
/// and goes on.
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
  /// [at each logged step] Cheap; a slow sink owns a thread.
  virtual void log(int64_t step, std::span<const Scalar> scalars) = 0;
  /// [once, also after an error] Flushes and closes. Must not throw.
  virtual void finish(RunOutcome outcome) noexcept = 0;
};

}  // namespace titan
