// What titan tokenize says about how far it is: rates of this run, and the time that is left where
// it can be known. Used by commands/tokenize.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tokenization.h"

namespace titan::tokenising {

/// How much there is in all; of the two only one is known.
struct SourceSize {
  std::optional<int64_t> documents;  ///< of an indexed data set
  std::optional<int64_t> shards;     ///< of a streamed one
};

/// "12,345 of 99,999 documents (12 %), 41.2 M tokens, 183.1 MB at 20.3 MB/s, 2,345 documents/s,
/// 1:05 left". `seconds`: that this run has taken. Nothing is said of time left while it would be
/// a guess: of shards three must have been done by this run.
std::string progress_line(const TokenizationState& state, const SourceSize& size, double seconds);

}  // namespace titan::tokenising
