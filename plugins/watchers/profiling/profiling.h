// The watcher `profiling`: traces of steps and memory snapshots, for [profiling].
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <titan/watcher.h>

#include "backward_spans.h"
#include "memory_profile.h"
#include "tracer.h"

namespace titan::profiling {

/// The keys of [profiling] set them.
struct Options {
  bool enable_profiling = false;
  std::string save_traces_folder = "profile_traces";
  int64_t profile_freq = 10;
  int64_t profiler_active = 1;
  int64_t profiler_warmup = 3;
  bool compress_traces = true;
  bool enable_memory_snapshot = false;
  std::string save_memory_snapshot_folder = "memory_snapshot";
};

/// A recorded step includes validation and saving. After an out-of-memory error a last snapshot is
/// written.
class Profiling final : public Watcher {
 public:
  /// [before the model has memory] Throws a config Error when the device cannot report its memory.
  Profiling(const Options& options, WatcherContext context);

  void attach(ModelPart& part) override;
  bool looks_into_layers() const override { return false; }
  bool reads_numbers() const override { return false; }
  void start(const WatcherStart& start) override;
  void before_step(int64_t step) override;
  void after_step(int64_t step) override;
  void failed(int64_t last_done_step) noexcept override;
  void finish(int64_t last_step) noexcept override;

 private:
  Options options_;
  WatcherContext context_;
  ModelPart* part_ = nullptr;
  Optimizer* optimizer_ = nullptr;
  std::unique_ptr<BackwardSpans> layers_;  // null unless traces are enabled
  std::unique_ptr<Tracer> tracer_;         // likewise
  std::unique_ptr<MemoryProfile> memory_;  // null unless snapshots are enabled
};

}  // namespace titan::profiling
