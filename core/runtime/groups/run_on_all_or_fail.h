// Runs work on all ranks so that a failure on one rank is an error on all: no rank waits for one
// that has given up. Used by the checkpointer.
#pragma once

#include <exception>

#include <titan/dist/group.h>
#include <titan/error.h>

namespace titan::core {

/// Collective. Every rank runs `work`. If it threw on any rank, every rank throws: its own error if
/// it has one, else an io Error with the number of failed ranks. `device`: where the group
/// communicates.
template <class Work>
void run_on_all_or_fail(const dist::Group& world, c10::Device device, const Work& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  const int64_t num_failed = world.all_reduce(int64_t{error != nullptr}, dist::Reduce::sum, device);
  if (error) std::rethrow_exception(error);
  TITAN_CHECK(num_failed == 0, io, "failed on ", num_failed, " other ranks; see their logs");
}

}  // namespace titan::core
