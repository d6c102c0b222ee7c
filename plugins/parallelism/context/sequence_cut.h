// Which tokens of a sequence each rank holds, and which keys they see on other ranks. Used by all
// files of this folder.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace titan::context_parallel {

enum class LoadBalancer {
  headtail,  ///< 2C pieces, rank r holds pieces r and 2C - 1 - r: equal work on all ranks
  none,      ///< C pieces, rank r holds piece r: the last rank has most work
};

/// `count` tokens of a rank, from `first` on.
struct Range {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const Range&) const = default;
};

/// The queries of one rank that see keys of another rank, and those keys. Either count may be 0.
struct Sight {
  Range queries, keys;
  bool causal = false;  ///< query i sees keys 0 ... i; else each query sees each key
};

/// Sequences of S tokens cut over C ranks. Each rank has n = S / C tokens, ascending.
class SequenceCut {
 public:
  SequenceCut(int64_t num_ranks, LoadBalancer balancer)
      : num_ranks_(num_ranks), balancer_(balancer) {}

  int64_t num_ranks() const { return num_ranks_; }
  int64_t pieces_per_rank() const { return balancer_ == LoadBalancer::headtail ? 2 : 1; }

  /// Throws a config Error with the nearest valid lengths when S is not a multiple of the number of
  /// pieces.
  void check_length(int64_t seq_len) const;

  /// (rows, S) -> (rows, n), contiguous: the tokens of `rank`.
  at::Tensor share_of(int64_t rank, const at::Tensor& x) const;
  /// (rows, S) -> (rows, S), contiguous: the tokens of all ranks in rank order.
  at::Tensor in_rank_order(const at::Tensor& x) const;

  /// The keys of `source` that `rank` sees, both with n tokens, if only causality hides keys.
  /// Unless rank = source, every visible key comes before every query that sees it.
  Sight sight(int64_t rank, int64_t source, int64_t n) const;

 private:
  int64_t num_pieces() const { return num_ranks_ * pieces_per_rank(); }
  /// Indices of the pieces of `rank`, in their order.
  std::vector<int64_t> pieces_of(int64_t rank) const;
  at::Tensor join(const at::Tensor& x, const std::vector<int64_t>& pieces) const;

  int64_t num_ranks_;
  LoadBalancer balancer_;
};

}  // namespace titan::context_parallel
