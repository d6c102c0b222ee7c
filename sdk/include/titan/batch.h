// What a layer needs beside its differentiated input.
#pragma once

#include <ATen/core/Tensor.h>

namespace titan {

/// One microbatch on the device. Rows are sequences; all tensors have shape (rows, seq_len).
struct Batch {
  at::Tensor tokens;  ///< int64 token ids
  at::Tensor labels;  ///< int64, the next token; -100 = ignored. Undefined: the head returns logits
  at::Tensor positions;  ///< int64 position of each token in its document or row; undefined = 0 ...
                         ///< seq_len - 1
  at::Tensor documents;  ///< int32 number of the document within the row, ascending, always in host
                         ///< memory: attention then sees no other document. Undefined = it sees
                         ///< the whole row

  /// Label of tokens that have no target (PyTorch's ignore_index).
  static constexpr int64_t kIgnoredLabel = -100;
};

}  // namespace titan
