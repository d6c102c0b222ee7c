// What an error on one rank says of the others, and what becomes of its run. Used by the commands
// whose ranks need each other.
#pragma once

#include <functional>
#include <memory>

#include "core/runtime/groups/failure_watch.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// Runs `work` of this rank, which `run` belongs to. Whatever it throws leaves as an Error that
/// also says what the other ranks were doing and where this rank's last collectives are recorded.
/// A run that cannot be destroyed then, since it would wait for ranks that are gone, is left to the
/// end of the process.
void with_failures_explained(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& watch,
                             const std::function<void()>& work);

}  // namespace titan::core
