// Dialects of regexes, and the error for unsupported ones. Used by all code that reads patterns.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace titan::bpe {

/// A regex that is wrong or not supported; `position` counts bytes from the pattern's begin.
struct PatternError : std::runtime_error {
  PatternError(size_t where, const std::string& reason)
      : std::runtime_error(reason), position(where) {}
  size_t position;
};

/// The regex engine for which a pattern was written.
enum class Dialect { oniguruma, rust };

}  // namespace titan::bpe
