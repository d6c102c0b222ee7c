// Runs a function in a forked child, with one pipe for its report and one for its output. Used by
// plugin_check.cpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace titan::core {

/// How a child ended, and its report and output.
struct ChildEnd {
  bool was_killed_for_time = false;
  int status = 0;       ///< as waitpid gives it
  std::string records;  ///< everything that it wrote to its report
  std::string output;   ///< the end of what it wrote to standard output and standard error
};

/// Forks; the child runs `body` with a function that appends to its report. When `body` returns,
/// the child exits with code 0 without running destructors of static objects. Returns when the
/// child has ended; after `limit` kills it and its children. Throws an io Error if the process
/// cannot fork.
ChildEnd run_forked(
    const std::function<void(const std::function<void(std::string_view)>& report)>& body,
    std::chrono::milliseconds limit);

}  // namespace titan::core
