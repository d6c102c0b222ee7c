#include "tensor_ranks.h"

#include <optional>
#include <utility>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <titan/dist/chunk.h>
#include <titan/dist/collectives.h>
#include <titan/error.h>
#include <titan/nn/gradient_sum.h>

namespace titan::expert_parallel {
namespace {

using at::Tensor;

/// `experts` (n, k): chosen experts, counted here; the number of experts is that of `like`. The
/// caller sets the weights.
nn::Routing routing_of(const Tensor& experts, const nn::Routing& like) {
  const Tensor flat = experts.flatten();
  return {.experts = experts,
          .weights = {},
          .counts = at::zeros_like(like.counts).scatter_add_(0, flat, at::ones_like(flat))};
}

void check_is_whole(const TokenCopies& copies) {
  TITAN_CHECK(
      !copies.gradients_are_summed, plugin,
      "experts cannot be spread over ranks of tensor parallelism within a region that gives "
      "a partial sum (Region::gathered_to_partial): put the mixture outside of it");
}

/// Exposes the rows and counts that `inner` has dispatched.
class TokensAround : public nn::DispatchedTokens {
 public:
  TokensAround(std::unique_ptr<nn::DispatchedTokens> inner, dist::Group group)
      : inner_(std::move(inner)), group_(std::move(group)) {
    rows = inner_->rows;
    counts = inner_->counts;
  }

 protected:
  std::unique_ptr<nn::DispatchedTokens> inner_;
  dist::Group group_;
};

/// Each rank has its own tokens.
class GatheredTokens final : public TokensAround {
 public:
  using TokensAround::TokensAround;
  Tensor combine(const Tensor& made, const Tensor& weights) override {
    const Tensor partial = inner_->combine(made, dist::all_gather(weights, 0, group_));
    return dist::reduce_scatter(partial, 0, group_);
  }
};

/// All ranks have the same tokens.
class CopiedTokens final : public TokensAround {
 public:
  using TokensAround::TokensAround;
  Tensor combine(const Tensor& made, const Tensor& weights) override {
    return dist::reduce_partial(inner_->combine(made, dist::copy_to_ranks(weights, group_)),
                                group_);
  }
};

class GatheringDispatcher final : public nn::TokenDispatcher {
 public:
  GatheringDispatcher(const dist::Group& group, std::unique_ptr<nn::TokenDispatcher> inner,
                      nn::Parameter* bias, at::ScalarType reduce_dtype)
      : group_(group), inner_(std::move(inner)) {
    if (bias) bias_.emplace(*bias, reduce_dtype);
  }

  std::unique_ptr<nn::DispatchedTokens> dispatch(const Tensor& x, const nn::Routing& routing,
                                                 const Tensor& factors,
                                                 const TokenCopies& copies) override {
    check_is_whole(copies);
    if (copies.num_ranks > 1) {
      if (bias_) bias_->attach(group_);
      return std::make_unique<CopiedTokens>(
          inner_->dispatch(dist::copy_to_ranks(x, group_), routing,
                           factors.defined() ? dist::copy_to_ranks(factors, group_) : factors, {}),
          group_);
    }
    return std::make_unique<GatheredTokens>(
        inner_->dispatch(
            dist::all_gather(x, 0, group_),
            routing_of(dist::all_gather_replicated(routing.experts, 0, group_), routing),
            factors.defined() ? dist::all_gather(factors, 0, group_) : factors, {}),
        group_);
  }

 private:
  dist::Group group_;
  std::unique_ptr<nn::TokenDispatcher> inner_;
  std::optional<nn::GradientSum> bias_;
};

/// Rows `own` of a tensor that all ranks of `group` have; each rank uses its own rows.
Tensor share_of(const Tensor& all, const dist::Chunk& own, const dist::Group& group) {
  return dist::copy_to_ranks(all, group).narrow(0, own.begin, own.size);
}

class SharedTokens final : public TokensAround {
 public:
  SharedTokens(std::unique_ptr<nn::DispatchedTokens> inner, dist::Group group, dist::Chunk own)
      : TokensAround(std::move(inner), std::move(group)), own_(own) {}
  Tensor combine(const Tensor& made, const Tensor& weights) override {
    const Tensor own = inner_->combine(made, share_of(weights, own_, group_));
    return dist::all_gather_replicated(own, 0, group_, own_.full);
  }

 private:
  dist::Chunk own_;
};

class SharingDispatcher final : public nn::TokenDispatcher {
 public:
  SharingDispatcher(dist::Group group, std::unique_ptr<nn::TokenDispatcher> inner)
      : group_(std::move(group)), inner_(std::move(inner)) {}

  std::unique_ptr<nn::DispatchedTokens> dispatch(const Tensor& x, const nn::Routing& routing,
                                                 const Tensor& factors,
                                                 const TokenCopies& copies) override {
    check_is_whole(copies);
    if (copies.num_ranks == 1) return inner_->dispatch(x, routing, factors, copies);
    const dist::Chunk own = dist::chunk_of(x.size(0), group_);
    return std::make_unique<SharedTokens>(
        inner_->dispatch(share_of(x, own, group_),
                         routing_of(routing.experts.narrow(0, own.begin, own.size), routing),
                         factors.defined() ? share_of(factors, own, group_) : factors, {}),
        group_, own);
  }

 private:
  dist::Group group_;
  std::unique_ptr<nn::TokenDispatcher> inner_;
};

}  // namespace

std::unique_ptr<nn::TokenDispatcher> gather_tokens(const dist::Group& group,
                                                   std::unique_ptr<nn::TokenDispatcher> inner,
                                                   nn::Parameter* bias,
                                                   at::ScalarType reduce_dtype) {
  return std::make_unique<GatheringDispatcher>(group, std::move(inner), bias, reduce_dtype);
}

std::unique_ptr<nn::TokenDispatcher> share_copies(const dist::Group& group,
                                                  std::unique_ptr<nn::TokenDispatcher> inner) {
  return std::make_unique<SharingDispatcher>(group, std::move(inner));
}

}  // namespace titan::expert_parallel
