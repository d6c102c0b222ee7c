// Computes the blocks of the attention matrix between one rank's queries and another rank's keys.
// Used by the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sequence_cut.h"

namespace titan::context_parallel {

/// Rows of a batch whose `queries` attend to `keys`. Within a block only causality hides keys.
struct Block {
  Range rows, queries, keys;
  bool causal = false;
  /// Index in the row at which the document of these tokens begins. 0 if documents see each other,
  /// or the caller did not request it.
  int64_t start = 0;

  /// The block's rows and queries of x (rows, heads, n, ...), a view.
  at::Tensor queries_of(const at::Tensor& x) const;
  /// The block's rows and keys of x (rows, heads, n, ...), a view.
  at::Tensor keys_of(const at::Tensor& x) const;
};

/// All keys of `source` that the queries of `rank` see, for `num_rows` rows of n tokens per rank. A
/// query is in one block at most; for source = rank it is in exactly one.
///
/// `documents`: undefined, or int32 (num_rows, C · n) in host memory and in rank order (Batch).
/// Document numbers ascend within a row, and equal numbers are one document. So a row sees at most
/// one rectangle of another rank's keys: the last document of those keys, as far as it continues in
/// the queries. Adjacent rows that see the same share their blocks.
///
/// `places`, int64 (n) in host memory by rank: the index of each of the rank's tokens in its row.
/// With them each block has the start of its document, which is then the same in all rows of the
/// block.
std::vector<Block> visible_blocks(const SequenceCut& cut, int64_t rank, int64_t source,
                                  int64_t num_rows, int64_t n, const at::Tensor& documents,
                                  const std::vector<at::Tensor>& places = {});

}  // namespace titan::context_parallel
