// Records a rank's memory history from the start, with layers and passes, and writes it as
// snapshots. Used by profiling.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/memory_history.h>
#include <titan/model.h>
#include <titan/optimizer.h>

#include "memory_log.h"

namespace titan::profiling {

struct MemoryProfileOptions {
  std::filesystem::path folder;  ///< of all snapshots
  int64_t freq = 10;             ///< steps between snapshots
};

/// Writes `iteration_<step>/rank<R>_memory_snapshot.pickle` at multiples of `freq`, and
/// `iteration_<last completed step>_exit/...` when the device has run out of memory, each with a
/// `rank<R>_memory_peak.txt`. The first failed write is logged and training continues. Thread:
/// trainer thread; wrappers of modules and gradients run on the threads that compute them.
class MemoryProfile {
 public:
  /// Starts recording. Throws a config Error when `device` is not a MemoryHistory. `device` and
  /// `mesh` outlive this.
  MemoryProfile(MemoryProfileOptions options, Device& device, const dist::Mesh& mesh);

  ~MemoryProfile();

  /// [after all transforms, before the part has memory] Wraps layers, their children, and
  /// gradients. This outlives the part's last forward.
  void attach(ModelPart& part);
  /// Reports parameters and optimizer states to the log; `optimizer` may be null.
  void begin_step(ModelPart& part, Optimizer* optimizer);
  void end_step(int64_t step);
  /// [while an error propagates] Writes the last snapshot if memory has run out.
  void on_error(int64_t last_step) noexcept;

 private:
  class PlaceScope;
  int32_t add_pass(const std::string& path, const std::string& layer, const char* name);
  void go_around(nn::Module& module, int32_t forward, int32_t backward, bool is_layer);
  int32_t enter(int32_t place);
  void enter_backward(int32_t place);
  void watch_gradients(ModelPart& part);
  void relabel(const at::Tensor& tensor, MemoryUse use, const nn::Parameter& parameter);
  void write(const std::string& iteration);

  MemoryProfileOptions options_;
  MemoryHistory* history_;  // the device
  int rank_;
  MemoryLog& log_;  // lives as long as the process: tensors that outlive the run report to it
  std::vector<std::string> layers_;
  std::vector<std::string> labels_;  // for the device, by place in the log
  std::map<const nn::Parameter*, int32_t> place_of_parameter_;
  std::atomic<bool> is_in_backward_ = false;
  int64_t num_steps_ = 0;  // completed in this session
  bool was_shown_ = false, has_failed_ = false;
};

}  // namespace titan::profiling
