// A mixture of experts in the place of a feed-forward: each token goes through a few of many; none
// is dropped unless RouterOptions::capacity_factor says so. Shazeer et al., 2017; Fedus et al., 2021; shared experts: Dai et al., 2024.
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
  RouterOptions router;            ///< its dim is that of the layer
  int64_t hidden_dim = 0;          ///< width within one expert
  int64_t num_shared_experts = 0;  ///< each token goes through these, too: one feed-forward of so
                                   ///< many times hidden_dim
  bool weighs_inputs = false;      ///< a row is weighed before its expert, not after it (Llama 4)
  bool has_biases = false;         ///< each matrix of an expert has one, drawn like it
  std::optional<ops::ClampedSwigluOptions> clamped = {};  ///< in the place of silu(gate) ⊙ up
  Init gate_init;                                         ///< of w1
  Init output_init;                                       ///< of w2 and w3, as those of FeedForward
};

/// Many gated feed-forwards: rows (n, D) sorted by expert -> the same, w2(silu(w1 x) ⊙ w3 x).
/// Parameters w1 and w3 (E, hidden, D), w2 (E, D, hidden); each is the weight of a GroupedLinear of
/// its name, where others may compute. With biases also w1_bias, w3_bias (E, hidden) and w2_bias
/// (E, D).
class TITAN_API GroupedExperts final : public Module {
 public:
  explicit GroupedExperts(const MoeOptions& options);
  ~GroupedExperts() override;

  /// `counts`: rows of each expert that this rank has. Runs through what goes around this layer.
  at::Tensor operator()(const at::Tensor& rows, at::IntArrayRef counts);

  FeedForwardWeights weights() { return {w1_.weight(), w2_.weight(), w3_.weight()}; }
  /// Weights and biases, of adapters that are attached to the products too: what an expert
  /// parallelism cuts along dimension 0.
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
  at::IntArrayRef counts_;  // of the call that is running
};

/// x (B, S, D) -> the same: the sum over a token's experts, in the order of its choices, of weight
/// times what the expert makes of it, in fp32 (double for double); plus the shared experts.
/// Children router, experts, shared_experts (where there are any); state expert_bias where the
/// router moves one. Every rank routes the tokens that it holds: nothing is communicated unless a
/// dispatcher does.
class TITAN_API MixtureOfExperts final : public Module {
 public:
  explicit MixtureOfExperts(const MoeOptions& options);
  ~MixtureOfExperts() override;

  Router& router() { return router_; }
  GroupedExperts& experts() { return experts_; }

  /// From now on `owner`, a name for messages, brings tokens to their experts. Throws a config
  /// Error that names both when another one does already.
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
