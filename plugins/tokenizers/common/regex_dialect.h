// Whom a regex was written for, and how it is refused. Used by everything that reads patterns.
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

/// Whom a pattern was written for.
enum class Dialect { oniguruma, rust };

}  // namespace titan::bpe
