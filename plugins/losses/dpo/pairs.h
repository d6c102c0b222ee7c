// Which documents of a batch are compared: neighbours in a row, a chosen answer and then a rejected
// one.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>

namespace titan::losses {

/// Documents 0 and 1 of a row are its first pair, 2 and 3 its second, and so on. What counts of a
/// document are the tokens with a target; one without any, such as the padding at the end, belongs
/// to no pair.
struct PairSums {
  at::Tensor sums;    ///< double (rows, pairs, 2) of a value per token; [..., 0] is the chosen one
  at::Tensor counts;  ///< double (rows, pairs, 2) of tokens with a target
};

/// `values` (rows, seq_len), 0 where a token has no target; differentiable in them.
PairSums sums_of_pairs(const at::Tensor& values, const Batch& batch);

/// How many pairs a batch in host memory holds. Throws a data Error for a document with targets
/// whose partner has none: an answer that was cut off, or data that are no preferences.
int64_t num_pairs(const Batch& batch);

/// Throws a data Error for a batch whose documents are not told apart.
void require_documents(const Batch& batch);

}  // namespace titan::losses
