// Matrix products joined with the collective before or after them, in one piece per rank: while one
// piece is transferred, another is multiplied. Used by asynchronous regions.
//
// Note [Order of the pieces] In step k rank r exchanges with rank (k - r) mod T, so each step pairs
// the ranks, and within a pair the lower rank sends first. Therefore a transport that runs its
// operations one after the other does not deadlock. A rank's own piece needs no transfer and fills
// a waiting time: it is multiplied first when pieces are received, last when they are sent.
// something has to be waited for: it is multiplied first when pieces arrive, last when they leave.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::tensor_parallel {

/// The group and the tags of its messages. All asynchronous operations of a run share one, so that
/// messages in flight have different tags.
class PieceLink {
 public:
  explicit PieceLink(const dist::Group& group) : group_(group) {}

  const dist::Group& group() const { return group_; }
  /// The other ranks in the order of this rank's exchanges.
  std::vector<int> peers() const;
  /// The same on all ranks if they call it equally often.
  int next_tag();

  struct Exchange {
    dist::Pending sent, received;
  };
  Exchange exchange(int peer, const at::Tensor& out, const at::Tensor& in, int tag) const;

 private:
  dist::Group group_;
  int last_tag_ = 0;
};

struct GatheredProducts {
  std::vector<at::Tensor> products;  ///< whole · matrix, (B, S, m) for each matrix
  at::Tensor whole;                  ///< the ranks' pieces joined along the sequence, (B, S, n)
};

/// x (B, S/T, n) of each rank, matrices (n, m).
GatheredProducts gather_multiply(const at::Tensor& x, const std::vector<at::Tensor>& matrices,
                                 PieceLink& link);

/// Σ over ranks and factors of input · matrix; each rank gets its part of the sequence. After
/// construction all transfers are in flight; the caller may do other work before `finish`.
class ScatteredProduct {
 public:
  /// inputs (B, S, n), one matrix (n, m) for each.
  ScatteredProduct(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& matrices,
                   PieceLink& link);
  /// (B, S/T, m). Ranks are added in their order, 16-bit types in fp32.
  at::Tensor finish();

 private:
  at::Tensor pieces_;  // (T, B, S/T, m), this rank's part of the sequence by sender
  std::vector<PieceLink::Exchange> in_flight_;
};

}  // namespace titan::tensor_parallel
