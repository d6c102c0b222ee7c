// Adds the state of the other ranks to an error of one rank, and decides the fate of its run. Used
// by the commands whose ranks need each other.
#pragma once

#include <functional>
#include <memory>

#include <titan/error.h>

#include "core/runtime/groups/failure_watch.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// Runs `work`. Any exception becomes an Error, which `when_failed` may extend before it is thrown.
/// One about missing memory has what lowers it.
void with_errors(const std::function<void()>& work, const std::function<void(Error&)>& when_failed);

/// Runs `work` of this rank, to which `run` belongs. Any exception becomes an Error that also
/// reports what the other ranks were doing and the file of this rank's last collectives. If
/// destroying the run would wait for ranks that are gone, the run is left undestroyed until the
/// process ends.
void with_failures_explained(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& watch,
                             const std::function<void()>& work);

}  // namespace titan::core
