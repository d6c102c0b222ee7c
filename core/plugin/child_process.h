// A forked child with a pipe for what it reports and one for what it prints. Used by
// plugin_check.cpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace titan::core {

/// How a child came to its end and what it left.
struct ChildEnd {
  bool was_killed_for_time = false;
  int status = 0;       ///< as waitpid gives it
  std::string records;  ///< all that it wrote to its report
  std::string output;   ///< the end of what it wrote to standard output and standard error
};

/// Forks; the child runs `body` with a function that appends to its report and leaves with exit
/// code 0 when `body` returns, without running destructors of static objects. Returns when the
/// child has ended, or kills it and its children after `limit`. Throws an io Error when no child
/// can be made.
ChildEnd run_forked(
    const std::function<void(const std::function<void(std::string_view)>& report)>& body,
    std::chrono::milliseconds limit);

}  // namespace titan::core
