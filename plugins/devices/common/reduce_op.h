// Converts Titan's reductions to those of c10d. Used by the gloo and NCCL backends.
#pragma once

#include <titan/dist/group.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace titan::cpu {

inline c10d::ReduceOp to_c10d(dist::Reduce reduce) {
  switch (reduce) {
    case dist::Reduce::sum:
      return c10d::ReduceOp::SUM;
    case dist::Reduce::max:
      return c10d::ReduceOp::MAX;
    case dist::Reduce::min:
      return c10d::ReduceOp::MIN;
  }
  return c10d::ReduceOp::SUM;
}

}  // namespace titan::cpu
