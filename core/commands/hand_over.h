// Hands commands over to other programs in titan's folder, and builds these in a build tree. So
// `titan` itself starts without loading or building their code. Used by main.cpp and
// plugin_command.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace titan::core {

/// The path of a program in this program's folder.
std::filesystem::path program_beside(const std::string& program);

/// Whether this runs from a build tree in which `program` is not built yet.
bool needs_build(const std::string& program);

/// The command that builds a target in the build tree that this program runs from.
std::string build_command(const std::string& target);

/// The help of a command while `target`, which lists its options, is not built; --help never starts
/// a build. `what` names the target in the text: "titan-train", "The plugin".
std::string help_before_build(const std::string& usage, const std::string& summary,
                              const std::string& what, const std::string& target);

/// Waits for other builds in that build tree, then builds `target` unless `is_there()`. Throws an
/// io Error with the next step when it is still missing.
void build_missing(const std::string& target, const std::function<bool()>& is_there);

/// Replaces this process by `program COMMAND ARGUMENT...` from the same folder, which finds
/// LibTorch as environment_with_torch() says. In a build tree the program is built first if it is
/// missing. Throws an io Error with the next step when the program cannot be started.
[[noreturn]] void hand_over(const std::string& program, const std::string& command,
                            const std::vector<std::string>& arguments);

}  // namespace titan::core
