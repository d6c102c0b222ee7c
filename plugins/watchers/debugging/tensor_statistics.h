// Summarizes the elements of a tensor: for messages about bad values and for traces that titan
// compare reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::debugging {

/// The position of a tensor within a larger one.
struct GlobalPart {
  std::vector<int64_t> offsets;  ///< one per dimension; empty: the tensor is whole
  std::vector<int64_t> shape;    ///< of the larger tensor
};

/// Of the elements of one tensor, accumulated in order in double, so equal on every machine.
struct TensorStatistics {
  int64_t count = 0;
  int64_t num_nan = 0;
  int64_t num_inf = 0;
  double mean = 0, rms = 0, min = 0, max = 0;  ///< of the finite elements; 0 if there are none
  int64_t first_bad = -1;                      ///< row-major index of the first NaN or Inf, or -1
  /// The sum over elements of a hash of (index in the larger tensor, bits), modulo 2^64. The sums
  /// of disjoint parts add up to that of the whole tensor, for any way of splitting it.
  uint64_t hash = 0;

  int64_t num_bad() const { return num_nan + num_inf; }
};

/// Copies `tensor` to the host. Supports all floating-point and integer dtypes; others have count
/// 0. Throws an internal Error when `part` has another number of dimensions.
TensorStatistics statistics_of(const at::Tensor& tensor, const GlobalPart& part = {});

/// Whether a floating-point tensor holds a NaN or an Inf: one reduction, whose result is read back.
/// False for other dtypes, on the meta device and for tensors without elements.
bool has_bad_values(const at::Tensor& tensor);

/// "3 of 4096 values are bad (nan 2, inf 1), the first at [0, 3, 17]; the others are between -1.5
/// and 2"
std::string bad_values_text(const TensorStatistics& statistics, at::IntArrayRef sizes);

}  // namespace titan::debugging
