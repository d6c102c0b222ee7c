// Makes patterns. Used by the tokenizer plugins.
#pragma once

#include <memory>
#include <string>

#include "pattern.h"
#include "regex_dialect.h"

namespace titan::bpe {

/// A scanner if there is one for exactly this pattern, else a Regex. Throws PatternError.
std::unique_ptr<Pattern> make_regex_pattern(const std::string& pattern, Dialect dialect);
/// Always a Regex, for comparisons. Throws PatternError.
std::unique_ptr<Pattern> make_pcre2_pattern(const std::string& pattern, Dialect dialect);
/// `text` must not be empty.
std::unique_ptr<Pattern> make_literal_pattern(std::string text);

}  // namespace titan::bpe
