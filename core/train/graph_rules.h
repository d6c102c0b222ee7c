// Decides whether forward and backward of a run's steps are replayed as a graph of the device.
#pragma once

#include <memory>
#include <string>

#include "core/config/schema/job_config.h"
#include "core/train/assembly/run.h"
#include "core/train/step/step_graph.h"

namespace titan::core {

/// Why steps of this run are not replayed: values that would change from step to step, or work of
/// the host. Empty: they are replayed. Call it after assembly.
std::string why_no_graph(const Run& run, const JobConfig& config);

/// Null if [compile] does not ask for graphs, the device has none, or there is a reason, which is
/// logged once.
std::unique_ptr<StepGraph> make_step_graph(Run& run, const JobConfig& config);

}  // namespace titan::core
