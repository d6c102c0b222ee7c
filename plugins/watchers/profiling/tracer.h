// Records steps with LibTorch's profiler (Kineto) and writes them as Chrome traces. Used by
// profiler.
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
  bool has_gpu = false;          ///< its kernels are recorded too
};

/// One cycle after the other: prepared, recorded, saved as
/// `iteration_<step>/rank<R>_trace.json[.gz]` under the number of the last step in it. What a file
/// cannot hold (a full disk) is said once and training goes on. Thread: trainer thread; the files
/// are written by a thread of their own, which the next cycle waits for.
class Tracer {
 public:
  /// `layers`, which outlive this, are asked for their spans.
  Tracer(TracerOptions options, const dist::Mesh& mesh, BackwardSpans& layers);
  /// Ends a recording without a file.
  ~Tracer();

  void begin_step(int64_t step);
  void end_step(int64_t step);
  /// [leaving the loop] What is being recorded is saved under `last_step`; all files are there.
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
  std::shared_ptr<bool> has_failed_ = std::make_shared<bool>(false);  // a file; the thread's alone
};

/// What readers of distributed traces ask for, as JSON with a blank behind each colon: they look
/// for the text `"rank": 3`.
std::string distributed_info(const dist::Mesh& mesh, const std::string& backend);

}  // namespace titan::profiling
