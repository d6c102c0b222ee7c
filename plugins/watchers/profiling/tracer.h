// Records steps with LibTorch's profiler (Kineto) and writes them as Chrome traces. Used by
// profiling.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <titan/dist/mesh.h>

#include "backward_spans.h"
#include "trace_schedule.h"

namespace titan::profiling {

struct TracerOptions {
  TraceSchedule schedule;
  std::filesystem::path folder;  ///< of all iterations
  bool compresses = true;        ///< by gzip, the name ends in .gz
  bool has_gpu = false;          ///< records its kernels too
};

/// Each cycle is prepared, recorded, and saved as `iteration_<step>/rank<R>_trace.json[.gz]`, named
/// after its last step. The first failed write (for example on a full disk) is logged and training
/// continues. Thread: trainer thread; a separate thread writes the files, and the next cycle waits
/// for it.
class Tracer {
 public:
  /// `layers`, which outlives this, provides spans for the trace.
  Tracer(TracerOptions options, const dist::Mesh& mesh, BackwardSpans& layers);
  /// Discards a recording in progress.
  ~Tracer();

  void begin_step(int64_t step);
  void end_step(int64_t step);
  /// [leaving the loop] Saves the recording in progress under `last_step` and waits for all files.
  void finish(int64_t last_step);

 private:
  enum class State { idle, prepared, recording };
  struct StepScope;

  void prepare();
  void record();
  void save(int64_t step);
  void discard();
  void wait_for_file();

  TracerOptions options_;
  BackwardSpans& layers_;
  int rank_;
  std::string distributed_info_;  // JSON
  State state_ = State::idle;
  std::unique_ptr<StepScope> step_scope_;
  std::thread writing_;
  std::shared_ptr<bool> has_failed_ = std::make_shared<bool>(false);  // used by the thread only
};

/// Metadata for readers of distributed traces, as JSON with a blank after each colon: they search
/// for the text `"rank": 3`.
std::string distributed_info(const dist::Mesh& mesh, const std::string& backend);

}  // namespace titan::profiling
