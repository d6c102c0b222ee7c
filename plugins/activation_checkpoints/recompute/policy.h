// Which results of a block's operations outlive its forward.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <vector>

#include <titan/recompute.h>

namespace titan::recompute {

/// Pure: the same operations give the same answers.
class Policy {
 public:
  virtual ~Policy();
  /// `operations`: those that the block has run so far; whether the last one's result is kept.
  virtual bool keeps(const std::vector<Operation>& operations) const = 0;
};

/// Nothing but the block's input.
std::unique_ptr<Policy> keep_nothing();

/// torchtitan's "op": attention, what comes from other ranks, largest values, and every second
/// matrix product beginning with the first. Products of `recomputed_shapes` (in, out) are neither
/// kept nor counted.
std::unique_ptr<Policy> keep_costly(std::set<std::array<int64_t, 2>> recomputed_shapes);

}  // namespace titan::recompute
