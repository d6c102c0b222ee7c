// A pattern that cuts or replaces text: a regex, a literal string, or a well-known pattern by a
// hand-written scanner. Made by make_pattern.h; used by the tokenizer plugins.
#pragma once

#include <cstddef>
#include <string_view>

#include "regex.h"

namespace titan::bpe {

/// Receives matches in order; they do not overlap.
class MatchSink {
 public:
  virtual void match(size_t begin, size_t end) = 0;

 protected:
  ~MatchSink() = default;
};

/// Immutable; any thread may search, each with its own scratch.
class Pattern {
 public:
  virtual ~Pattern() = default;
  /// Calls `sink` for every match in `text` (valid UTF-8). An empty match right after a match is
  /// skipped.
  virtual void find_all(std::string_view text, RegexScratch& scratch, MatchSink& sink) const = 0;
};

}  // namespace titan::bpe
