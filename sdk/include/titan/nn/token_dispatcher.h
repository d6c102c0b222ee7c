// The interface that moves tokens to their experts and back; expert parallelism replaces it.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <titan/batch.h>
#include <titan/export.h>
#include <titan/nn/router.h>

namespace titan::nn {

/// The tokens of one forward, at their experts.
class TITAN_API DispatchedTokens {
 public:
  virtual ~DispatchedTokens();

  at::Tensor rows;              ///< (n, D), sorted by expert, for the experts of this rank
  std::vector<int64_t> counts;  ///< number of rows of each expert of this rank; sum n

  /// made (n, D): the expert's output for each of `rows`; `weights` (N, k) of the tokens' choices
  /// in fp32 or double. Returns (N, D): for each token the sum over its choices, in order, of
  /// weight times expert output (ops::sum_of_slots). Differentiable in both.
  virtual at::Tensor combine(const at::Tensor& made, const at::Tensor& weights) = 0;
};

/// Differentiable in x, in both directions; counts and choices have no gradient. Every rank that
/// holds the layer runs it equally often, forward and backward, even a rank without rows.
class TITAN_API TokenDispatcher {
 public:
  virtual ~TokenDispatcher();
  /// x (N, D); `routing` of its tokens. `factors`: undefined, or (N, k) in fp32 or double: factors
  /// of the rows before their experts, also differentiable. `copies`: the ranks that hold the same
  /// tokens, with the same routing. On the meta device rows are distributed evenly.
  virtual std::unique_ptr<DispatchedTokens> dispatch(const at::Tensor& x, const Routing& routing,
                                                     const at::Tensor& factors,
                                                     const TokenCopies& copies) = 0;
};

/// The rows of x sorted by expert, in the order of `order`, times `factors`; a stage of
/// dispatchers. (N k, D).
TITAN_API at::Tensor rows_by_expert(const at::Tensor& x, const at::Tensor& order,
                                    const at::Tensor& factors);
/// The slots (Routing::experts, flattened) sorted by expert; stable. (N k).
TITAN_API at::Tensor slots_by_expert(const Routing& routing);

/// For layers whose experts are all on this rank.
TITAN_API std::unique_ptr<TokenDispatcher> make_local_dispatcher();

}  // namespace titan::nn
