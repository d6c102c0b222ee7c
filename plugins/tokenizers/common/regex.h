// One regex, compiled by PCRE2 with its just-in-time compiler. Used by patterns that no
// hand-written scanner covers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "regex_translate.h"

namespace titan::bpe {

/// Buffers of one thread for matching; reused between calls.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(RegexScratch&&) noexcept;

 private:
  friend class Regex;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Match {
  size_t begin;
  size_t end;
};

/// Immutable after construction: any thread may match, each with its own scratch.
class Regex {
 public:
  /// `pattern`: valid UTF-8. Throws PatternError with the position.
  Regex(std::string_view pattern, Dialect dialect);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  /// The first match at or after byte `from`. `text` must be valid UTF-8 and `from` a boundary;
  /// look-behinds see the text before `from`. Throws a data Error if a limit is reached.
  std::optional<Match> search(std::string_view text, size_t from, RegexScratch& scratch) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace titan::bpe
