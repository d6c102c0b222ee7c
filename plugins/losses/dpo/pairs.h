// The pairs of documents of a batch that DPO compares: neighbours in a row, a chosen answer and
// then a rejected one. Used by the loss `dpo`.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>

namespace titan::losses {

/// Documents 0 and 1 of a row are its first pair, 2 and 3 its second, and so on. Only tokens with a
/// target count. A document without any, such as the padding at the end, belongs to no pair.
struct PairSums {
  at::Tensor sums;    ///< double (rows, pairs, 2) of a value per token; [..., 0] is the chosen one
  at::Tensor counts;  ///< double (rows, pairs, 2) of tokens with a target
};

/// `values` (rows, seq_len), 0 where a token has no target; differentiable in them.
PairSums sums_of_pairs(const at::Tensor& values, const Batch& batch);

/// Number of pairs in a batch in host memory. Throws a data Error if one document of a pair has
/// targets and the other has none: an answer was cut off, or the data set holds no preferences.
int64_t num_pairs(const Batch& batch);

/// Throws a data Error for a batch without Batch::documents.
void require_documents(const Batch& batch);

}  // namespace titan::losses
