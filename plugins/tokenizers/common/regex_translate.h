// Translates regexes of tokenizer.json (for Oniguruma) and of tiktoken (for Rust's fancy-regex) to
// PCRE2 with the same meaning. A pattern without an exact translation is an error. Used by Regex.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regex_dialect.h"

namespace titan::bpe {

struct TranslatedPattern {
  std::string text;              ///< for PCRE2 with UTF, UCP and newline = LF
  std::vector<uint32_t> origin;  ///< for each byte of `text`: its byte in the pattern
};

/// Translated differences:
/// - `\s` is property White_Space (PCRE2's has U+180E too), `\w` has marks too, `\h` is a
///   hexadecimal digit, `\v` is U+000B;
/// - Oniguruma: `^` and `$` are line anchors, `(?m)` lets the dot match newlines, `{n,m}+` repeats
///   the group `{n,m}` (PCRE2: possessive), `{n}?` makes it optional, `{,n}` is `{0,n}`;
/// - Rust: `$` matches at the very end only (PCRE2: also before a last newline), and `\w` has the
///   joiners but no superscripts;
/// - `\p{Script}` is the script, not its extensions; general categories follow Unicode 16;
/// - a class inside a class is a union.
/// Refused: back references, subexpression calls, absent operators, conditionals, `&&`, POSIX
/// brackets, extended syntax, and escapes that mean other things in the two dialects.
TranslatedPattern translate_regex(std::string_view pattern, Dialect dialect);

}  // namespace titan::bpe
