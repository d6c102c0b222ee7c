// [profiling] of a run: traces of steps and snapshots of memory. Used by assembly and by the
// trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/optimizer.h>

#include "core/config/job_config.h"
#include "core/profile/backward_spans.h"
#include "core/profile/memory_profile.h"
#include "core/profile/tracer.h"

namespace titan::core {

/// Without [profiling] enable_profiling and enable_memory_snapshot it holds nothing and does
/// nothing. Thread: trainer thread.
class Profiler {
 public:
  Profiler() = default;
  /// [before the model has memory] `device` and `mesh` outlive this. Throws a config Error when the
  /// device cannot tell of its memory.
  Profiler(const JobConfig& config, Device& device, const dist::Mesh& mesh);

  /// [after all transforms, before the part has memory] This and `mesh` outlive the part's last
  /// forward.
  void attach(ModelPart& part);
  /// [before the first step] Steps are counted on from `resumed_step`. `part` and `optimizer`,
  /// which may be null, outlive the last step.
  void start(int64_t resumed_step, ModelPart& part, Optimizer* optimizer);

  /// Runs `body`, which is step number `step` with all that belongs to it. On an error whose cause
  /// is that memory has run out a last snapshot is written.
  void step(int64_t step, const std::function<void()>& body);
  /// [leaving the loop, whichever way] What is being recorded is saved; what fails is said.
  void finish() noexcept;

 private:
  ProfilingSection options_;
  std::string folder_;  // of the run
  const dist::Mesh* mesh_ = nullptr;
  bool has_gpu_ = false;
  ModelPart* part_ = nullptr;
  Optimizer* optimizer_ = nullptr;
  int64_t last_step_ = 0;
  std::unique_ptr<BackwardSpans> layers_;  // null unless enabled
  std::unique_ptr<Tracer> tracer_;         // likewise
  std::unique_ptr<MemoryProfile> memory_;  // likewise
};

}  // namespace titan::core
