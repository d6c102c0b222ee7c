// Matrix products joined with the collective before or behind them, cut into one piece per rank:
// while one piece travels, another is multiplied. Used by asynchronous regions.
//
// Note [Order of the pieces]
// In step k rank r meets rank (k - r) mod T, so each step pairs the ranks off, and within a pair
// the lower rank sends first. A transport that carries out what it is given one after the other
// therefore never waits in a circle. A rank's own piece needs no travel and fills the gap where
// something has to be waited for: it is multiplied first when pieces arrive, last when they leave.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/dist/group.h>

namespace titan::tensor_parallel {

/// The group and the tags of its messages; all asynchronous operations of a run share one, so that
/// no two have one tag while both may be under way.
class PieceLink {
 public:
  explicit PieceLink(const dist::Group& group) : group_(group) {}

  const dist::Group& group() const { return group_; }
  /// The other ranks in the order in which this one meets them.
  std::vector<int> peers() const;
  /// The same on all ranks when they call it equally often.
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

/// Σ over ranks and factors of input · matrix, of which this rank gets its part of the sequence.
/// All is under way once it is constructed; the caller has time for other work before `finish`.
class ScatteredProduct {
 public:
  /// inputs (B, S, n), one matrix (n, m) for each.
  ScatteredProduct(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& matrices,
                   PieceLink& link);
  /// (B, S/T, m). Ranks are added in their order, 16-bit types in fp32.
  at::Tensor finish();

 private:
  at::Tensor pieces_;  // (T, B, S/T, m), this rank's part from each
  std::vector<PieceLink::Exchange> under_way_;
};

}  // namespace titan::tensor_parallel
