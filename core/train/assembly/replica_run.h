// What a plugin that connects replica groups does to the run of this group: rows, state and
// checkpoints. Used by the assembly.
#pragma once

#include <memory>

#include <titan/fault_tolerance/replicas.h>

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/runtime/groups/rendezvous.h"

namespace titan::core {

struct Run;

/// `run` outlives it. `identity`: of this job (run_identity.h). [after the checkpointer was made]
std::unique_ptr<ReplicaRun> make_replica_run(Run& run, const JobConfig& config,
                                             const RunIdentity& identity, const StartPoint& start);

}  // namespace titan::core
