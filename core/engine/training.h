// Trains a checked job, on its data or by a custom loop. Used by titan train and by engines.cpp.
#pragma once

#include <vector>

#include <titan/engine.h>
#include <titan/settings/diagnostics.h>

#include "core/config/schema/job_config.h"
#include "core/estimate/dry_run.h"
#include "core/plugin/registry.h"
#include "core/runtime/launch_env.h"

namespace titan::core {

/// Throws the report of `found`, completed by the mistakes that the job's components find.
[[noreturn]] void refuse(const JobConfig& config, Registry& registry, const DryRunOptions& options,
                         Diagnostics found);

/// Logs notes and warnings.
void log_messages(const std::vector<Diagnostic>& messages);

/// Builds and trains the job on this rank. `start`: monotonic_seconds() when the program began.
/// `loop`: null, or the source of its steps. Returns the exit code.
int start_training(JobConfig config, Registry& registry, const LaunchEnv& launch, double start,
                   TrainingLoop* loop);

}  // namespace titan::core
