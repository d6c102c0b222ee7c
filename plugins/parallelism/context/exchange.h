// How the keys and values of all ranks come to this one, and their gradients home. Used by the
// kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::context_parallel {

enum class RotateMethod {
  allgather,  ///< all at once: fewer messages, keys and values of the whole sequence in memory
  alltoall,   ///< a ring: from rank to rank while the last ones are used, two shares in memory
};

/// Keys (rows, KV, n, hd) and values (rows, KV, n, hdv) as one message: (rows, n, KV, hd + hdv),
/// contiguous. Gradients have the same shape.
at::Tensor pack(const at::Tensor& k, const at::Tensor& v);
/// Views of it, (rows, KV, n, hd) and (rows, KV, n, hdv); `width`: hd.
at::Tensor keys_of(const at::Tensor& packed, int64_t width);
at::Tensor values_of(const at::Tensor& packed, int64_t width);

/// Uses the keys and values of rank `source`.
using Visit = std::function<void(int64_t source, const at::Tensor& packed)>;
/// Adds to the gradients of one rank's keys and values, which are fp32 (double for double).
using AddShare = std::function<void(const at::Tensor& gradients)>;
/// Computes with the keys and values of rank `source`; what it returns is called once, when their
/// gradients are here.
using BackwardVisit = std::function<AddShare(int64_t source, const at::Tensor& packed)>;

/// Of n tokens a share, with M the bytes of one packed share and G those of its gradients, this
/// rank sends:
///
///             forward       backward
///   allgather (C - 1) M     (C - 1) M + (C - 1) G    one gather each way and a reduce-scatter
///   alltoall  (C - 1) M     (C - 1) M + C G          C - 1 sends each way and C of gradients
///
/// Whatever is visible to whom, the messages are the same. Sources come in the order r, r - 1, ...,
/// r - C + 1 (mod C), and sums are made in one order: results do not depend on time.
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
