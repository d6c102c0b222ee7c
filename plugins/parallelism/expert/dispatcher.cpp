#include "dispatcher.h"

#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <titan/dist/collectives.h>
#include <titan/ops/token_rows.h>

namespace titan::expert_parallel {
namespace {

using at::Tensor;

/// Received rows are ordered by rank, and within a rank by expert. Returns their indices ordered by
/// expert: int64 (rows), a permutation.
Tensor numbers_by_expert(const Tensor& received) {
  const int64_t ranks = received.size(0), experts = received.size(1);
  const int64_t* count = received.const_data_ptr<int64_t>();
  std::vector<int64_t> first(static_cast<size_t>(ranks * experts));
  int64_t num_rows = 0;
  for (size_t i = 0; i < first.size(); ++i) first[i] = std::exchange(num_rows, num_rows + count[i]);
  Tensor numbers = at::empty({num_rows}, at::TensorOptions().dtype(at::kLong));
  int64_t* next = numbers.mutable_data_ptr<int64_t>();
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < count[r * experts + e]; ++i)
        *next++ = first[static_cast<size_t>(r * experts + e)] + i;
  return numbers;
}

class TokensAtRanks final : public nn::DispatchedTokens {
 public:
  TokensAtRanks(const Tensor& mine, const Tensor& order, dist::RowCounts row_counts,
                dist::Group group)
      : order_(order), row_counts_(std::move(row_counts)), group_(std::move(group)) {
    const Tensor came = dist::all_to_all(mine, row_counts_.splits, group_);
    by_expert_ = numbers_by_expert(row_counts_.received).to(came.device());
    rows = ops::rows_of_slots(came, by_expert_);
    const Tensor of_experts = row_counts_.received.sum(0);
    const int64_t* count = of_experts.const_data_ptr<int64_t>();
    counts.assign(count, count + of_experts.numel());
  }

  Tensor combine(const Tensor& made, const Tensor& weights) override {
    const Tensor by_rank = ops::in_order_of_slots(made, by_expert_);
    const Tensor back = dist::all_to_all(by_rank, row_counts_.splits.swapped(), group_);
    return ops::sum_of_slots(ops::in_order_of_slots(back, order_), weights);
  }

 private:
  Tensor order_;      // slots by expert
  Tensor by_expert_;  // received rows by expert
  dist::RowCounts row_counts_;
  dist::Group group_;
};

class Dispatcher final : public nn::TokenDispatcher {
 public:
  explicit Dispatcher(dist::Group group) : group_(std::move(group)) {}

  std::unique_ptr<nn::DispatchedTokens> dispatch(const Tensor& x, const nn::Routing& routing,
                                                 const Tensor& factors,
                                                 const TokenCopies&) override {
    const Tensor order = nn::slots_by_expert(routing);
    return std::make_unique<TokensAtRanks>(
        nn::rows_by_expert(x, order, factors), order,
        dist::exchange_counts(routing.counts, order.numel(), group_), group_);
  }

 private:
  dist::Group group_;
};

}  // namespace

std::unique_ptr<nn::TokenDispatcher> make_dispatcher(const dist::Group& group) {
  return std::make_unique<Dispatcher>(group);
}

}  // namespace titan::expert_parallel
