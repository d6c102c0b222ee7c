// Writes values as words of a shell command and as TOML. Used by commands that write scripts or
// start `titan train --set`.
#pragma once

#include <string>
#include <vector>

#include <titan/program/shell_word.h>
#include <titan/value.h>

namespace titan::commands {

/// Words separated by blanks, each as shell_word() writes it.
std::string shell_line(const std::vector<std::string>& words);

/// `value` on one line of TOML. Throws a config Error for null.
std::string toml_text(const Value& value);

}  // namespace titan::commands
