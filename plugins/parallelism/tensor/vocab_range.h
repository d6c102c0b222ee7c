// The range of the vocabulary that one rank holds, for the embedding's look-up and for the loss.
#pragma once

#include <cstdint>
#include <functional>

#include <titan/dist/group.h>
#include <titan/nn/embedding.h>
#include <titan/nn/parameter.h>

namespace titan::tensor_parallel {

/// Rows first ... first + size - 1 of `full`.
struct VocabRange {
  int64_t first = 0;
  int64_t size = 0;
  int64_t full = 0;
  int64_t largest = 0;  ///< size of the first rank's range; the same number on all ranks

  /// Range of this rank of a weight (vocab, dim) that has just been cut over `group`.
  static VocabRange of(const nn::Parameter& weight, const dist::Group& group);

  struct Local {
    at::Tensor index;       ///< id - first; 0 if another rank holds the token
    at::Tensor is_foreign;  ///< bool: another rank holds the token
  };
  /// `ids`: any shape, int64. An id outside of the vocabulary stays outside of the local range, so
  /// that the device's look-up rejects it.
  Local local(const at::Tensor& ids) const;
};

/// Cuts the look-up: each rank returns the rows of its own tokens and zeros for the others.
/// `combine` sums these partial tensors (B, S, dim) over the ranks. Throws, in a forward on the
/// CPU, a data Error for a token outside of the vocabulary.
void wrap_embedding(nn::Embedding& embedding, const VocabRange& range,
                    std::function<at::Tensor(const at::Tensor&)> combine);

}  // namespace titan::tensor_parallel
