// A document as tokens. Made by the row reader, used by the packers.
#pragma once

#include <cstdint>
#include <vector>

namespace titan::core {

struct TokenizedDocument {
  std::vector<int32_t> tokens;  ///< never empty
  /// Of conversations: for each token whether it is a target. Empty: every token is.
  std::vector<uint8_t> is_target = {};
  /// Starts of the conversations in it, ascending from 0; all go to one window, where each is a
  /// separate document. Empty: a single document, which may be split unless it has `is_target`.
  std::vector<int32_t> starts = {};
  size_t source = 0;     ///< index among the sources of the row
  int64_t epoch = 0;     ///< of the source, from 0
  double num_bytes = 0;  ///< bytes of its text, or of a conversation's targets; 0 when the source
                         ///< holds tokens only
};

}  // namespace titan::core
