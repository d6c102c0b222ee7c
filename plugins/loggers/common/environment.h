// Environment variables that external tools define, as defaults of a logger's options. An option
// takes precedence over a variable. Header only, see output_file.h.
#pragma once

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace titan::loggers {

/// `option` when it is not empty, else the first of `variables` that is set and not empty, else "".
inline std::string option_or_environment(const std::string& option,
                                         std::initializer_list<const char*> variables) {
  if (!option.empty()) return option;
  for (const char* variable : variables)
    if (const char* value = std::getenv(variable); value && *value) return value;
  return {};
}

/// Splits at commas and strips blanks; empty words are left out.
inline std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

}  // namespace titan::loggers
