// What the elements of a tensor are, in a few numbers: for messages about bad values and for traces
// by which runs are compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::debugging {

/// The rectangle of a larger tensor that a tensor is.
struct GlobalPart {
  std::vector<int64_t> offsets;  ///< one per dimension; empty: the tensor is whole
  std::vector<int64_t> shape;    ///< of the larger one
};

/// Of the elements of one tensor, taken one after the other in double: the same on every machine.
struct TensorStatistics {
  int64_t count = 0;
  int64_t num_nan = 0;
  int64_t num_inf = 0;
  double mean = 0, rms = 0, min = 0, max = 0;  ///< of the finite ones; 0 where there are none
  int64_t first_bad = -1;                      ///< row-major place of the first NaN or Inf, or -1
  /// A sum over the elements of a hash of (place in the larger tensor, bits), modulo 2^64: the sums
  /// of parts that do not overlap add up to that of the whole, however it was cut.
  uint64_t hash = 0;

  int64_t num_bad() const { return num_nan + num_inf; }
};

/// Copies `tensor` to the host. Any floating-point or integer type; others have count 0. An
/// internal Error where `part` has another number of dimensions.
TensorStatistics statistics_of(const at::Tensor& tensor, const GlobalPart& part = {});

/// Whether a floating-point tensor holds a NaN or an Inf: one reduction, whose result is read back.
/// False for other types, on the meta device and for tensors without elements.
bool has_bad_values(const at::Tensor& tensor);

/// "3 of 4096 values are bad (nan 2, inf 1), the first at [0, 3, 17]; the others are between -1.5
/// and 2"
std::string bad_values_text(const TensorStatistics& statistics, at::IntArrayRef sizes);

}  // namespace titan::debugging
