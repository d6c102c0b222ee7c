// Fast products of weights with few rows, for generating one token at a time. Used by titan
// generate.
#pragma once

#include <titan/export.h>

namespace titan::ops {

TITAN_OPTIONAL_HEADER(few_rows);

/// While alive, ops::linear computes products of at most kMost rows, if no graph is recorded, at
/// the memory bandwidth of the CPU; BLAS is optimized for many rows. fp32 and bf16, on the CPU;
/// sums in fp32. A row's result does not depend on the other rows or on the number of threads. Its
/// last bits differ from those of ops::linear outside the scope, so do not use it in training.
/// Applies to the thread that constructs it.
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
