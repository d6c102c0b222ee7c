// Sequences as rows of a batch, for loops that train on what they sample.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

struct SequenceRow {
  std::vector<int32_t> ids;  ///< prompt and answer
  size_t prompt_size = 0;    ///< ids that have no target
  /// What the loss is told of each token of the answer: a vector for each, all of one size. It
  /// stands in Batch::reference where that token is the label. Empty: nothing.
  std::vector<std::vector<float>> given;
};

/// (rows, seq_len) in host memory, a sequence a row: tokens, labels of the answers, positions,
/// documents (each row is one), padding behind the end, and `reference` (rows, seq_len, n) in fp32
/// where rows have `given`. Throws a data Error for a row of more than seq_len + 1 ids, without an
/// answer, or with another number of `given`.
TITAN_API Batch batch_of_rows(const std::vector<SequenceRow>& rows, int64_t seq_len);

}  // namespace titan
