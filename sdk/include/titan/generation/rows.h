// Builds a batch with one sequence per row. Used by training loops that learn from their own
// samples.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>

namespace titan {

struct SequenceRow {
  std::vector<int32_t> ids;  ///< prompt and answer
  size_t prompt_size = 0;    ///< number of ids of the prompt, which get no label
  /// Inputs of the loss: one vector for each token of the answer, all of one size. Batch::reference
  /// holds it where that token is the label. Empty: none.
  std::vector<std::vector<float>> given;
};

/// A batch (rows, seq_len) in host memory, one sequence per row: tokens, labels of the answers,
/// positions, documents (each row is one), padding after the end, and `reference` (rows, seq_len,
/// n) in fp32 if rows have `given`. Throws a data Error if there are no rows, and for a row of more
/// than seq_len + 1 ids, without a prompt or an answer, or whose `given` differs in number or size.
TITAN_API Batch batch_of_rows(const std::vector<SequenceRow>& rows, int64_t seq_len);

}  // namespace titan
