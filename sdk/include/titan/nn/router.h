// The router of a mixture of experts: chooses and weights each token's experts and balances their
// load. Used by nn::MixtureOfExperts.
#pragma once

#include <memory>

#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/step_module.h>
#include <titan/nn/token_counts.h>

namespace titan::nn {

/// The function from the gate's logits to scores.
enum class RouterScore {
  softmax,  ///< over all experts: the scores of a token sum to one
  sigmoid,  ///< of each expert separately
};

/// The score of a group of experts for a token.
enum class GroupScore {
  best_two,  ///< sum of the scores of its two best experts (DeepSeek-V3)
  best,      ///< score of its best expert (DeepSeek-V2)
};

struct RouterOptions {
  int64_t dim = 0;
  int64_t num_experts = 0;
  int64_t top_k = 1;  ///< experts per token
  RouterScore score = RouterScore::softmax;
  bool normalises = false;  ///< weights of a token's experts are divided by their sum
  double scale = 1;         ///< factor on the weights, after that
  /// Experts form num_groups groups of neighbours. Only experts of the best limited_groups groups
  /// can be chosen. 0: all can.
  int64_t num_groups = 0;
  int64_t limited_groups = 0;
  GroupScore group_score = GroupScore::best_two;
  bool has_bias = false;    ///< the gate has a bias, initially zero
  bool is_float32 = false;  ///< the gate multiplies in fp32 even if the run computes in 16 bits
  /// Change of an expert's bias per step, which balances load without a loss. Wang et al., 2024
  /// (arXiv:2408.15664). 0: no update.
  double balance_rate = 0;
  /// The bias exists even without updates, for weights that were trained with one.
  bool keeps_bias = false;
  /// Coefficient of the load-balancing loss of each sequence: DeepSeek-V3, 2024 (arXiv:2412.19437),
  /// equations 17 to 20, over the tokens that are not padding (Batch::is_padding). 0: none.
  double balance_loss = 0;
  /// Coefficient of the router z-loss, the mean square of logsumexp(logits) over the tokens that
  /// the main loss counts: Zoph et al., 2022 (arXiv:2202.08906), equation 5. 0: none.
  double z_loss = 0;
  /// Capacity: an expert takes the first ceil(capacity_factor S k / E) tokens of each sequence of S
  /// that choose it. Later choices of it are dropped and contribute zero (Fedus et al., 2021). 0:
  /// nothing is dropped.
  double capacity_factor = 0;
  /// Token t of the step's global batch (TokenPlaces::numbers) goes to experts t k, t k + 1, ...
  /// (mod E), regardless of its scores: for timing. The same under every layout.
  bool forces_balance = false;
  Init init;  ///< of the gate

  /// Whether experts are chosen by score plus bias.
  bool is_biased() const { return keeps_bias || balance_rate != 0; }
};

/// The routing of n tokens, in the order of the batch.
struct Routing {
  at::Tensor experts;  ///< int64 (n, k): a token's experts, the best first
  at::Tensor weights;  ///< (n, k) in fp32, double for double; differentiable in x and the gate
  at::Tensor counts;   ///< int64 (E): tokens of each expert; n k in all
  /// int64 (m), ascending: the indices t k + j of the choices that are not dropped. Undefined: none
  /// is dropped, as in every routing that a dispatcher receives.
  at::Tensor kept = {};
};

/// A Module from x (B, S, D) to scores (B, S, E) in fp32 (double for double); `route` chooses
/// experts by the scores.
///
/// An expert is chosen by score plus bias and weighted by its score only. Ties go to the first
/// expert. Recomputation by activation checkpointing reuses the choices (Operation::routing).
/// Children gate (replicated) and choice, whose output is Routing::experts as (B, S, k); loggers
/// observe the load there (titan/observe.h).
///
/// The bias is updated at commit from the counts of all ranks over the step, each token counted
/// once: delta = rate * sign(mean - count), bias += delta - mean(delta). Padding, validation,
/// recomputation, and skipped and repeated steps do not count.
class TITAN_API Router final : public Module, public StepModule {
 public:
  /// `bias` (E) in fp32: state of the enclosing layer, which names it. Null exactly if
  /// options.is_biased() is false. Throws a config Error if top_k is not in 1 ... num_experts, or
  /// for invalid groups.
  Router(const RouterOptions& options, std::shared_ptr<Parameter> bias);
  ~Router() override;

  /// x (B, S, D). Runs through the wrappers of this layer, like every call of a module.
  Routing route(const at::Tensor& x, const Batch& batch);

  Linear& gate() { return gate_; }
  const RouterOptions& options() const { return options_; }

  /// Throws a config Error for a balance_loss or a capacity_factor if sequences are sharded over
  /// ranks.
  void connect(const dist::Mesh& mesh) override;
  void begin_run() override;
  void commit(const Step& step) override;

 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override;

 private:
  class Choice;

  RouterOptions options_;
  std::shared_ptr<Parameter> bias_;
  Linear& gate_;
  Choice& choice_;
  const dist::Mesh* mesh_ = nullptr;
  TokenCounts counts_;
};

}  // namespace titan::nn
