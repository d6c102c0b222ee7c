#include "sequence_cut.h"

#include <ATen/ops/cat.h>

#include <titan/error.h>

namespace titan::context_parallel {

void SequenceCut::check_length(int64_t seq_len) const {
  const int64_t pieces = num_pieces(), below = seq_len / pieces * pieces;
  const bool is_balanced = balancer_ == LoadBalancer::headtail;
  TITAN_CHECK(seq_len % pieces == 0 && seq_len > 0, config, "a sequence of ", seq_len,
              " tokens cannot be cut over ", num_ranks_, " context-parallel ranks: load balancer '",
              is_balanced ? "headtail" : "none", "' makes ", pieces,
              " equal pieces; set training.seq_len to ",
              below > 0 ? std::to_string(below) + " or " : "", below + pieces);
}

std::vector<int64_t> SequenceCut::pieces_of(int64_t rank) const {
  if (balancer_ == LoadBalancer::headtail) return {rank, 2 * num_ranks_ - 1 - rank};
  return {rank};
}

at::Tensor SequenceCut::join(const at::Tensor& x, const std::vector<int64_t>& pieces) const {
  const int64_t size = x.size(1) / num_pieces();
  std::vector<at::Tensor> parts;
  for (const int64_t piece : pieces) parts.push_back(x.narrow(1, piece * size, size));
  return at::cat(parts, 1);
}

at::Tensor SequenceCut::share_of(int64_t rank, const at::Tensor& x) const {
  return join(x, pieces_of(rank));
}

at::Tensor SequenceCut::in_rank_order(const at::Tensor& x) const {
  std::vector<int64_t> order;
  for (int64_t rank = 0; rank < num_ranks_; ++rank)
    for (const int64_t piece : pieces_of(rank)) order.push_back(piece);
  return join(x, order);
}

Sight SequenceCut::sight(int64_t rank, int64_t source, int64_t n) const {
  const Range all{0, n};
  if (source == rank) return {all, all, /*causal=*/true};
  if (balancer_ == LoadBalancer::none) return source < rank ? Sight{all, all} : Sight{};
  // the pieces' order is ... source, rank ... -rank, -source ... or with source and rank swapped
  if (source < rank) return {all, {0, n / 2}};
  return {{n / 2, n - n / 2}, all};
}

}  // namespace titan::context_parallel
