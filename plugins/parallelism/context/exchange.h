// Exchanges keys and values between the ranks of context parallelism, and returns their gradients.
// Used by the kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::context_parallel {

enum class RotateMethod {
  allgather,  ///< all-gather: fewer messages; keys and values of the whole sequence in memory
  alltoall,   ///< ring: overlaps with computation; keys and values of two ranks in memory
};

/// Packs keys (rows, KV, n, hd) and values (rows, KV, n, hdv) into one message: (rows, n, KV, hd +
/// hdv), contiguous. Gradients have the same shape.
at::Tensor pack(const at::Tensor& k, const at::Tensor& v);
/// Views of a packed message, (rows, KV, n, hd) and (rows, KV, n, hdv); `width`: hd.
at::Tensor keys_of(const at::Tensor& packed, int64_t width);
at::Tensor values_of(const at::Tensor& packed, int64_t width);

/// Computes with the keys and values of rank `source`.
using Visit = std::function<void(int64_t source, const at::Tensor& packed)>;
/// Adds to the gradients of one rank's keys and values, in fp32 (double for double).
using AddShare = std::function<void(const at::Tensor& gradients)>;
/// Computes with the keys and values of rank `source`. The returned function is called once, with
/// the sum of their gradients so far.
using BackwardVisit = std::function<AddShare(int64_t source, const at::Tensor& packed)>;

/// With n tokens per rank, M the bytes of one rank's packed keys and values, and G those of their
/// gradients, this rank sends:
///
///             forward       backward
///   allgather (C - 1) M     (C - 1) M + (C - 1) G    one gather each way and a reduce-scatter
///   alltoall  (C - 1) M     (C - 1) M + C G          C - 1 sends each way and C of gradients
///
/// The messages do not depend on which tokens see each other. Sources come in the order r, r - 1,
/// ..., r - C + 1 (mod C), and sums are made in a fixed order, so results do not depend on timing.
class Exchange {
 public:
  virtual ~Exchange();
  /// `own`: packed.
  virtual void forward(const at::Tensor& own, const Visit& visit) const = 0;
  /// Returns the gradients of `own` from all ranks.
  virtual at::Tensor backward(const at::Tensor& own, const BackwardVisit& visit) const = 0;
};

std::unique_ptr<Exchange> make_exchange(RotateMethod method, const dist::Group& group);

}  // namespace titan::context_parallel
