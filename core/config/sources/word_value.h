// The value that a word of the command line stands for, by the type of the option that it is for.
#pragma once

#include <string_view>

#include <titan/options.h>

namespace titan::core {

/// What cannot be read as the option's type stays a word, which Option::problem() then refuses.
/// A list is one word of items between commas, or as TOML and JSON write it.
Value value_of_word(const Option& option, std::string_view word);

/// A list as TOML and JSON write it, `["a", "b"]`; null if the word is not a list.
Value bracketed_list(std::string_view word);

}  // namespace titan::core
