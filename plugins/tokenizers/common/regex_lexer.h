// Parses intervals and single-character escapes of Oniguruma's syntax. Used by regex_translate
// only.
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

/// The interval at byte `at` of `pattern`; nullopt if the brace is an ordinary character.
std::optional<Interval> parse_interval(std::string_view pattern, size_t at);

/// The escape at byte `at`, which must mean one character inside and outside of a class: its form
/// in PCRE2, and its length in `pattern`. Throws PatternError for any other escape.
std::pair<std::string, size_t> character_escape(std::string_view pattern, size_t at);

}  // namespace titan::bpe
