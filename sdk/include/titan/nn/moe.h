// A mixture of experts in place of a feed-forward: each token is routed to a few of many experts.
// Tokens are dropped only with RouterOptions::capacity_factor. Shazeer et al., 2017; Fedus et al.,
// 2021; shared experts: Dai et al., 2024.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/nn/feed_forward.h>
#include <titan/nn/grouped_linear.h>
#include <titan/nn/kernel_seam.h>
#include <titan/nn/module.h>
#include <titan/nn/router.h>
#include <titan/nn/token_dispatcher.h>
#include <titan/ops/clamped_swiglu.h>

namespace titan::nn {

struct MoeOptions {
  RouterOptions router;            ///< its dim is the layer's
  int64_t hidden_dim = 0;          ///< hidden width of one expert
  int64_t num_shared_experts = 0;  ///< experts that see every token; they form one feed-forward of
                                   ///< num_shared_experts * hidden_dim
  bool weighs_inputs = false;      ///< weights scale an expert's inputs, not its outputs (Llama 4)
  bool has_biases = false;  ///< each matrix of an expert has a bias, initialised like the matrix
  std::optional<ops::ClampedSwigluOptions> clamped = {};  ///< replaces silu(gate) ⊙ up
  Init gate_init;                                         ///< of w1
  Init output_init;                                       ///< of w2 and w3, as in FeedForward
};

/// Many gated feed-forwards: rows (n, D) sorted by expert -> (n, D), w2(silu(w1 x) ⊙ w3 x).
/// Parameters w1 and w3 (E, hidden, D), w2 (E, D, hidden). Each is the weight of a GroupedLinear of
/// the same name, whose kernel plugins can replace. With biases also w1_bias, w3_bias (E, hidden)
/// and w2_bias (E, D).
class TITAN_API GroupedExperts final : public Module {
 public:
  explicit GroupedExperts(const MoeOptions& options);
  ~GroupedExperts() override;

  /// `counts`: rows of each expert of this rank. Runs through the wrappers of this layer.
  at::Tensor operator()(const at::Tensor& rows, at::IntArrayRef counts);

  FeedForwardWeights weights() { return {w1_.weight(), w2_.weight(), w3_.weight()}; }
  /// Weights and biases, including those of adapters attached to the projections: the parameters
  /// that expert parallelism shards along dimension 0.
  std::vector<Parameter*> stacks();
  /// The three products.
  std::vector<GroupedLinear*> projections() { return {&w1_, &w2_, &w3_}; }

 protected:
  at::Tensor forward(const at::Tensor& rows, const Batch& batch) override;

 private:
  GroupedLinear& add_projection(const std::string& name, const std::vector<int64_t>& shape,
                                const Init& init, bool has_bias);

  std::optional<ops::ClampedSwigluOptions> clamped_;
  GroupedLinear& w1_;
  GroupedLinear& w2_;
  GroupedLinear& w3_;
  at::IntArrayRef counts_;  // of the running call
};

/// x (B, S, D) -> (B, S, D): the sum over a token's experts, in the order of its choices, of weight
/// times expert output, in fp32 (double for double), plus the shared experts. Children router,
/// experts and, if there are any, shared_experts; state expert_bias if the router has one. Every
/// rank routes the tokens that it holds; only the dispatcher communicates.
class TITAN_API MixtureOfExperts final : public Module {
 public:
  explicit MixtureOfExperts(const MoeOptions& options);
  ~MixtureOfExperts() override;

  Router& router() { return router_; }
  GroupedExperts& experts() { return experts_; }

  /// From now on `owner`, a name for messages, moves tokens to their experts. Throws a config Error
  /// that names both if another owner does already.
  void set_dispatcher(std::string owner, std::unique_ptr<TokenDispatcher> dispatcher);
  const KernelOwners& dispatcher_owners() const { return dispatcher_.owners(); }
  std::string computed_by() const override;

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  std::string place() const;
  std::shared_ptr<Parameter> add_bias(const RouterOptions& options);

  bool weighs_inputs_;
  Router& router_;
  GroupedExperts& experts_;
  FeedForward* shared_ = nullptr;
  KernelSeam<TokenDispatcher> dispatcher_;
};

}  // namespace titan::nn
