// tokenizer.json's regexes are written for Oniguruma, tiktoken's for Rust's fancy-regex; this
// rewrites one into PCRE2's dialect with the same meaning. What cannot be said with the same
// meaning is an error, never a guess. Used by Regex.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regex_dialect.h"

namespace titan::bpe {

struct TranslatedPattern {
  std::string text;              ///< for PCRE2 with UTF, UCP and newline = LF
  std::vector<uint32_t> origin;  ///< for each byte of `text`: the byte of the pattern it stands for
};

/// Differences that are bridged:
/// - `\s` is property White_Space (PCRE2's has U+180E too), `\w` has marks too, `\h` is a
///   hexadecimal digit, `\v` is U+000B;
/// - Oniguruma: `^` and `$` are line anchors, `(?m)` lets the dot match newlines, `{n,m}+` repeats
///   the group `{n,m}` (PCRE2: possessive), `{n}?` makes it optional, `{,n}` is `{0,n}`;
/// - Rust: `$` stands at the very end only (PCRE2: also before a last newline), and `\w` has the
///   joiners but no superscripts;
/// - `\p{Script}` is the script, not its extensions; general categories follow Unicode 16;
/// - a class inside a class is a union.
/// Refused: back references, subexpression calls, absent operators, conditionals, `&&`, POSIX
/// brackets, extended syntax, and escapes that mean other things in the two dialects.
TranslatedPattern translate_regex(std::string_view pattern, Dialect dialect);

}  // namespace titan::bpe
