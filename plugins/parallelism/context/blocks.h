// The rectangles of the attention matrix that one rank computes against the keys of another. Used
// by the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sequence_cut.h"

namespace titan::context_parallel {

/// Rows of a batch whose `queries` attend to `keys`. Nothing is hidden within, or what causality
/// hides.
struct Block {
  Range rows, queries, keys;
  bool causal = false;
  /// Where in their rows the document of these tokens begins; 0 where documents see each other, or
  /// nobody asked.
  int64_t start = 0;

  /// Of (rows, heads, n, ...): the block's rows and queries, a view.
  at::Tensor queries_of(const at::Tensor& x) const;
  /// Of (rows, heads, n, ...): the block's rows and keys, a view.
  at::Tensor keys_of(const at::Tensor& x) const;
};

/// Everything that the queries of `rank` see of the keys of `source`, in `num_rows` rows of n
/// tokens a share. A query is in one block at most; for source = rank it is in exactly one.
///
/// `documents`: undefined, or int32 (num_rows, C · n) in host memory and in rank order (Batch):
/// numbers ascend within a row, and equal ones are one document, so that of another rank's keys a
/// row sees one rectangle at most: the last document of those keys, as far as it goes on in the
/// queries. Adjacent rows that see the same share their blocks.
///
/// `places`, int64 (n) in host memory by rank: where in its row each token of the rank stands. With
/// them blocks say where their documents begin, which their rows then have in common.
std::vector<Block> visible_blocks(const SequenceCut& cut, int64_t rank, int64_t source,
                                  int64_t num_rows, int64_t n, const at::Tensor& documents,
                                  const std::vector<at::Tensor>& places = {});

}  // namespace titan::context_parallel
