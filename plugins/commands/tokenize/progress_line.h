// The progress line of titan tokenize: rates of this run, and the remaining time where it can be
// estimated. Used by plugin.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tokenization.h"

namespace titan::tokenising {

/// The total size; one of the two is known.
struct SourceSize {
  std::optional<int64_t> documents;  ///< of an indexed data set
  std::optional<int64_t> shards;     ///< of a streamed one
};

/// "12,345 of 99,999 documents (12 %), 41.2 M tokens, 183.1 MB at 20.3 MB/s, 2,345 documents/s,
/// 1:05 left". `seconds`: duration of this run. Omits the remaining time while an estimate would be
/// a guess: for shards, until this run has finished three.
std::string progress_line(const TokenizationState& state, const SourceSize& size, double seconds);

}  // namespace titan::tokenising
