// Converts a word of the command line into a value of its option's type. Used by command_line.cpp
// and command_flags.cpp.
#pragma once

#include <string_view>

#include <titan/options.h>

namespace titan::core {

/// A word that is not of the option's type remains a string, which Option::problem() then refuses.
/// A list is one word with commas, or in the syntax of TOML and JSON.
Value value_of_word(const Option& option, std::string_view word);

/// A list in the syntax of TOML and JSON, `["a", "b"]`; null if the word is not a list.
Value bracketed_list(std::string_view word);

}  // namespace titan::core
