// Commands that are programs of their own beside titan, so that training neither loads nor waits to
// build what they are made of.
#pragma once

#include <string>
#include <vector>

namespace titan::core {

/// Whether this runs from a build tree that does not hold `program` yet.
bool needs_build(const std::string& program);

/// The command that builds `program` in the build tree that this one runs from.
std::string build_command(const std::string& program);

/// Replaces this process by `program`, which stands beside it. In a build tree that does not hold
/// it yet it is built first, after any other build in this tree. Does not return; throws an io
/// Error with the next step when the program cannot be had.
[[noreturn]] void hand_over(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace titan::core
