#include "core/train/explained_failure.h"

#include <exception>
#include <string>

#include <titan/error.h>

namespace titan::core {
namespace {

void explain(Error& error, Rendezvous& rendezvous, FailureWatch& watch) {
  rendezvous.abandon();
  for (const std::string& line : watch.report(error.what())) error.with_context(line);
  const std::string path = watch.write_record();
  if (error.kind() == ErrorKind::distributed && !path.empty())
    error.with_context("the last collectives of this rank are in " + path +
                       "; titan flight analyzes the records of all ranks");
}

/// Destroys nothing after a failure: closing groups whose other ranks are gone could wait forever,
/// and a thread that hangs in a data set still uses it.
void leave_to_the_end_of_the_process(std::unique_ptr<Run>& run, const LaunchEnv& launch) {
  const bool has_stalled = run->loader && run->loader->has_stalled();
  if (launch.world_size > 1 || has_stalled) static_cast<void>(run.release());
}

}  // namespace

void with_failures_explained(std::unique_ptr<Run>& run, Rendezvous& rendezvous, FailureWatch& watch,
                             const std::function<void()>& work) {
  try {
    work();
  } catch (Error& e) {
    explain(e, rendezvous, watch);
    leave_to_the_end_of_the_process(run, rendezvous.launch());
    throw;
  } catch (const std::exception& e) {
    Error error(ErrorKind::internal, e.what());
    explain(error, rendezvous, watch);
    leave_to_the_end_of_the_process(run, rendezvous.launch());
    throw error;
  }
}

}  // namespace titan::core
