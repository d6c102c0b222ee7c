// Policies that choose the results of a block's operations to keep for the backward. Used by
// BlockRun.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <vector>

#include <titan/recompute.h>

namespace titan::recompute {

/// Pure: the answer depends only on the operations.
class Policy {
 public:
  virtual ~Policy();
  /// Whether the result of the last of `operations` is kept. `operations`: all that the block has
  /// run so far.
  virtual bool keeps(const std::vector<Operation>& operations) const = 0;
};

/// Keeps only the block's input.
std::unique_ptr<Policy> keep_nothing();

/// torchtitan's "op": keeps attention, results of communication, maxima, and every second matrix
/// product beginning with the first. Products of `recomputed_shapes` (in, out) are neither kept nor
/// counted.
std::unique_ptr<Policy> keep_costly(std::set<std::array<int64_t, 2>> recomputed_shapes);

}  // namespace titan::recompute
