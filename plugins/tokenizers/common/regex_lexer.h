// The two parts of Oniguruma's syntax that are read ahead: intervals and escapes of one character.
// Used by regex_translate only.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace titan::bpe {

/// `{n}`, `{n,}`, `{,m}` or `{n,m}`, as written.
struct Interval {
  std::string low;
  std::string high;
  bool exact = false;  ///< {n}
  size_t length = 0;   ///< bytes
};

/// The interval at byte `at` of `pattern`; nothing when the brace there is an ordinary character.
std::optional<Interval> parse_interval(std::string_view pattern, size_t at);

/// The escape at byte `at`, which must stand for one character in a class and outside: how PCRE2
/// writes it, and its length in `pattern`. Throws PatternError for any other escape.
std::pair<std::string, size_t> character_escape(std::string_view pattern, size_t at);

}  // namespace titan::bpe
