// Quotes words of a command that a message prints, so that a user can paste it into a shell.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(shell_word);

namespace titan {

/// `word` itself if a POSIX shell reads it as one word; else in single quotes.
inline std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "@%_-+=:,./";
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != kPlain.npos;
  });
  if (is_plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace titan
