// Translates property escapes (\p{L}, \p{Han}, \d, \w) to PCRE2, with the characters of Unicode 16
// that an older PCRE2 lacks. Used by regex_translate only.
#pragma once

#include <string>
#include <string_view>

#include "regex_dialect.h"

namespace titan::bpe {

struct Property {
  bool negated = false;
  std::string name;      ///< PCRE2's name: "L", "sc:Han", "Alphabetic"
  std::string category;  ///< "L", "Lu" when it is a general category, else empty
  size_t length = 0;     ///< bytes of the escape

  std::string item() const { return (negated ? "\\P{" : "\\p{") + name + "}"; }
  std::string positive_item() const { return "\\p{" + name + "}"; }
  /// Items to add to positive_item() in a class; may be empty.
  std::string added_items() const;
};

/// Reads `\p{...}`, `\P{...}`, `\p{^...}`, `\d` or `\D` at the start of `escape`. Throws
/// PatternError with a position relative to `escape`.
Property parse_property(std::string_view escape);

/// The inside of a class that equals the dialect's `\w`: letters, marks, decimal digits, letter
/// numbers, connectors and alphabetic symbols; with Oniguruma the superscripts and fractions of
/// Latin-1 too, with Rust the joiners.
std::string word_class_items(Dialect dialect);

}  // namespace titan::bpe
