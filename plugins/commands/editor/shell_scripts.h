// The files of shell/, which the build embeds into the plugin (shell_scripts.cpp.in).
#pragma once

#include <string_view>

namespace titan::commands {

extern const std::string_view kBashScript, kZshScript, kFishScript;

}  // namespace titan::commands
