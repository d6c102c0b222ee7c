// Errors, checksums and poisoned memory. Used by the modes that check results.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::probe {

/// ||out - exact|| / ||exact||, in double, on the device of `out`. The norm of `out` if `exact` is
/// zero. Not finite if `out` has an element that is not.
double relative_error(const at::Tensor& out, const at::Tensor& exact);

/// The share of bytes that differ; 1 when shapes or dtypes differ.
double share_of_unequal_bytes(const at::Tensor& a, const at::Tensor& b);

/// Numbers in [-2, 2) that every dtype of 8 or more significant bits represents: the same on any
/// device.
at::Tensor direction_like(const at::Tensor& out);

/// Sums of a tensor's bits, weighted by their position, modulo 2^64. Computed on the tensor's
/// device.
class Checksum {
 public:
  explicit Checksum(at::Device device);
  /// A change of any one element changes the checksum.
  at::Tensor of(const at::Tensor& tensor) const;  ///< int64 scalar on the device

 private:
  at::Tensor weights_;
};

/// Fills memory that the allocator returns next with bytes 0xFF, which are NaN in every floating
/// dtype, so that elements which an operation does not write are visible. Has no effect if freed
/// memory returns to the device at once (PYTORCH_NO_CUDA_MEMORY_CACHING).
class Poison {
 public:
  explicit Poison(at::Device device) : device_(device) {}
  /// Returns all cached memory to the device. Called before the tensors of a case are made, so that
  /// they are not placed in poisoned memory.
  void release();
  /// From now on covers the cached memory between live tensors, and `bytes` more. Calls spread().
  void cover(int64_t bytes);
  /// Allocates, fills and frees all covered memory. Covers more if is_exceeded().
  void spread();
  /// Whether the allocator has requested device memory since `cover`; such memory was not poisoned.
  /// False on the CPU.
  bool is_exceeded() const;
  /// Share of NaN in new tensors of some sizes: 1 if the poison works.
  double share_seen() const;

 private:
  /// Sizes of blocks that fill the gaps between live tensors.
  std::vector<int64_t> find_gaps() const;
  void fill() const;
  bool is_cached() const;
  int64_t reserved() const;

  at::Device device_;
  std::vector<int64_t> gaps_;
  int64_t bytes_ = 0, reserved_ = 0;
};

}  // namespace titan::probe
