// The layout of sequences as rows. Used by training on given rows and by generation that computes
// as training does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <titan/batch.h>

namespace titan {

/// (rows, seq_len) in host memory, without labels: tokens, 0 after the end of a row, positions, and
/// one document per row. Ids beyond seq_len are left out.
Batch unlabelled_rows(const std::vector<std::span<const int32_t>>& rows, int64_t seq_len);

}  // namespace titan
