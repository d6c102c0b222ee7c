// What [debug] asks for in the steps of a run, put together. Used by assembly and by the members of
// a step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>
#include <titan/transform.h>

#include "core/config/job_sections.h"
#include "core/debug/anomaly_detection.h"
#include "core/debug/bad_value_finder.h"
#include "core/debug/module_watch.h"
#include "core/debug/tensor_trace.h"

namespace titan::core {

/// Whether there is anything to make a StepDebugging for.
bool debugs_steps(const DebugSection& options);

/// Collective: every rank makes one and calls the same.
class StepDebugging {
 public:
  /// `smallest_scale`: of a run with a loss scale (BadValueFinder). `mesh` outlives this, and
  /// `device` is where it communicates.
  StepDebugging(const DebugSection& options, const dist::Mesh& mesh, c10::Device device,
                std::optional<double> smallest_scale);

  /// [on the whole model, after converters] config Error: what is asked for is not there.
  void match(ModelPart& whole);
  /// [after all transforms]
  void attach(ModelPart& part);
  /// Follows every run of a step.
  GradientReducer& watcher() { return watch_; }
  /// What runs the microbatches: `inner`, or what goes around it.
  StepExecutor& around(StepExecutor& inner);
  /// [before the first step] See TensorTrace::start.
  void start(const std::string& dump_folder, int64_t resumed_step, int64_t first_row);
  /// Before those that judge the loss.
  std::vector<StepMember*> members();

 private:
  ModuleWatch watch_;
  std::unique_ptr<BadValueFinder> finder_;
  std::unique_ptr<TensorTrace> trace_;
  std::unique_ptr<AnomalyDetection> anomalies_;
};

}  // namespace titan::core
