// How tokens get to their experts and back: what an expert parallelism swaps.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/router.h>

namespace titan::nn {

/// Tokens of one forward at their experts.
class TITAN_API DispatchedTokens {
 public:
  virtual ~DispatchedTokens();

  at::Tensor rows;              ///< (n, D): those of the first expert that this rank has, and so on
  std::vector<int64_t> counts;  ///< how many each expert that this rank has got; n in all

  /// made (n, D): what became of each of `rows`; `weights` (N, k) of the tokens' choices in fp32 or
  /// double. Gives (N, D): of each token the sum over its choices, in their order, of weight times
  /// what the expert has made of it (ops::sum_of_slots). Differentiable in both.
  virtual at::Tensor combine(const at::Tensor& made, const at::Tensor& weights) = 0;
};

/// Differentiable in x, in both directions; counts and choices have no gradient. Every rank that
/// holds the layer runs it equally often, forward and backward, even one that has or gets no rows.
class TITAN_API TokenDispatcher {
 public:
  virtual ~TokenDispatcher();
  /// x (N, D); `routing` of its tokens. `factors`: undefined, or (N, k) in fp32 or double: what
  /// each row is multiplied by on its way, differentiable too. `copies`: who else has these tokens,
  /// with the same routing. On the meta device rows are dealt evenly.
  virtual std::unique_ptr<DispatchedTokens> dispatch(const at::Tensor& x, const Routing& routing,
                                                     const at::Tensor& factors,
                                                     const TokenCopies& copies) = 0;
};

/// Rows by expert, in the order of `experts_in_order`; a stage of dispatchers. (N k, D).
TITAN_API at::Tensor rows_by_expert(const at::Tensor& x, const at::Tensor& order,
                                    const at::Tensor& factors);
/// The slots (Routing::experts, flattened) by expert; those of one expert in their order. (N k).
TITAN_API at::Tensor slots_by_expert(const Routing& routing);

/// Where this rank has all experts.
TITAN_API std::unique_ptr<TokenDispatcher> make_local_dispatcher();

}  // namespace titan::nn
