// Work that fails on one rank fails on all: nobody waits for a rank that has given up. Used by the
// checkpointer.
#pragma once

#include <exception>

#include <titan/dist/group.h>
#include <titan/error.h>

namespace titan::core {

/// Collective. Every rank does its `work`; when that threw somewhere, it throws everywhere: its own
/// error where there is one, else an io Error that says how many ranks failed. `device`: where the
/// group communicates.
template <class Work>
void together(const dist::Group& world, c10::Device device, const Work& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  const int64_t num_failed = world.all_reduce(int64_t{error != nullptr}, dist::Reduce::sum, device);
  if (error) std::rethrow_exception(error);
  TITAN_CHECK(num_failed == 0, io, "it failed on ", num_failed, " other ranks; they say why");
}

}  // namespace titan::core
