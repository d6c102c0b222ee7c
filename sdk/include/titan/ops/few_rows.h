// Products of weights with few rows: tokens that are generated one at a time. Used by titan
// generate.
#pragma once

#include <titan/export.h>

namespace titan::ops {

TITAN_OPTIONAL_HEADER(few_rows);

/// While one lives, ops::linear computes products of at most kMost rows, of which no graph is
/// recorded, as fast as the CPU's memory gives the weight: BLAS is made for many rows. fp32 and
/// bf16, on the CPU; sums in fp32. A row's result does not depend on the other rows or on the
/// number of threads, but its last bits are not those of ops::linear otherwise: not for training.
/// Thread: counts on the one that makes it.
class TITAN_API FewRowsScope {
 public:
  static constexpr int kMost = 8;  ///< rows; beyond, BLAS is faster

  FewRowsScope();
  ~FewRowsScope();
  FewRowsScope(const FewRowsScope&) = delete;

 private:
  bool before_;
};

}  // namespace titan::ops
