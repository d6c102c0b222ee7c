// Commands that are programs of their own beside titan, so that training neither loads nor waits to
// build what they are made of.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace titan::core {

/// The file of a program that stands beside this one.
std::filesystem::path program_beside(const std::string& program);

/// Whether this runs from a build tree that does not hold `program` yet.
bool needs_build(const std::string& program);

/// The command that builds a program, or another target, in the build tree that this one runs from.
std::string build_command(const std::string& target);

/// What the help of a command says before `target`, which lists the options, is built: help never
/// starts a build. `what` is called by the text: "titan-train", "The plugin".
std::string help_before_build(const std::string& usage, const std::string& summary,
                              const std::string& what, const std::string& target);

/// Builds `target` in that build tree, after any other build in it, unless `is_there` by then.
/// Throws an io Error with the next step when it is not there afterwards.
void build_missing(const std::string& target, const std::function<bool()>& is_there);

/// Replaces this process by `program COMMAND ARGUMENT...`, which stands beside it. In a build tree
/// that does not hold it yet it is built first, after any other build in this tree. Does not
/// return; throws an io Error with the next step when the program cannot be had.
[[noreturn]] void hand_over(const std::string& program, const std::string& command,
                            const std::vector<std::string>& arguments);

}  // namespace titan::core
