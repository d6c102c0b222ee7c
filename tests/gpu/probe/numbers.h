// Errors, bits and poisoned memory. Used by the modes that judge results.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::probe {

/// ||out - exact|| / ||exact||, in double, on the device of `out`. The norm of `out` where `exact`
/// is zero. Not a number when an element of `out` is not.
double relative_error(const at::Tensor& out, const at::Tensor& exact);

/// How many bytes differ, out of all; 1 when shapes or types differ.
double share_of_unequal_bytes(const at::Tensor& a, const at::Tensor& b);

/// Numbers in [-2, 2) that every type of 8 or more significant bits holds: the same on any device.
at::Tensor direction_like(const at::Tensor& out);

/// Sums of a tensor's bits, weighted by their place, modulo 2^64: computed where the tensor lies.
class Checksum {
 public:
  explicit Checksum(at::Device device);
  /// A change of any one element changes it.
  at::Tensor of(const at::Tensor& tensor) const;  ///< int64 scalar on the device

 private:
  at::Tensor weights_;
};

/// Fills memory that the allocator hands out next with bytes 0xFF, which are NaN in every floating
/// type, so that an element that an operation does not write shows. Does nothing where freed memory
/// goes back to the device at once (PYTORCH_NO_CUDA_MEMORY_CACHING).
class Poison {
 public:
  explicit Poison(at::Device device) : device_(device) {}
  /// Gives all cached memory back to the device. Called before the tensors of a case are made, so
  /// that they do not lie in memory that was covered.
  void release();
  /// Covers from now on what is cached beside the tensors that live, and `bytes` more. Spreads.
  void cover(int64_t bytes);
  /// Allocates all that is covered, fills and frees it. Covers more where that was exceeded.
  void spread();
  /// Whether the allocator has asked the device for memory since `cover`: that was not poisoned.
  /// False on the CPU.
  bool is_exceeded() const;
  /// Share of NaN in new tensors of some sizes: 1 where the poison works.
  double share_seen() const;

 private:
  /// Sizes of blocks that fill the gaps between tensors that live.
  std::vector<int64_t> find_gaps() const;
  void fill() const;
  bool is_cached() const;
  int64_t reserved() const;

  at::Device device_;
  std::vector<int64_t> gaps_;
  int64_t bytes_ = 0, reserved_ = 0;
};

}  // namespace titan::probe
