// A document as the packers take it. Made by the row reader.
#pragma once

#include <cstdint>
#include <vector>

namespace titan::core {

struct TokenizedDocument {
  std::vector<int32_t> tokens;  ///< never empty
  /// Of conversations: for each token whether it is to be predicted. Empty: every token is.
  std::vector<uint8_t> is_target = {};
  /// Where the sequences in it begin, ascending from 0; they stay in one window, and each is a
  /// document of its own there. Empty: it is one, which may be cut unless it has `is_target`.
  std::vector<int32_t> starts = {};
  size_t source = 0;     ///< its number among the sources of the row
  int64_t epoch = 0;     ///< of the source, from 0
  double num_bytes = 0;  ///< of its text, of conversations what is learned; 0 when the source
                         ///< holds tokens only
};

}  // namespace titan::core
