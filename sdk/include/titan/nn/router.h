// Which experts each token of a layer goes to, how much each of them counts, and how their load is
// kept even. Used by nn::MixtureOfExperts.
#pragma once

#include <memory>

#include <titan/nn/linear.h>
#include <titan/nn/module.h>
#include <titan/nn/step_module.h>
#include <titan/nn/token_counts.h>

namespace titan::nn {

/// What makes scores of the gate's logits.
enum class RouterScore {
  softmax,  ///< over all experts: scores of a token add up to one
  sigmoid,  ///< of each expert alone
};

/// What one group of experts is worth to a token.
enum class GroupScore {
  best_two,  ///< the sum of its two best (DeepSeek-V3)
  best,      ///< its best (DeepSeek-V2)
};

struct RouterOptions {
  int64_t dim = 0;
  int64_t num_experts = 0;
  int64_t top_k = 1;  ///< experts that a token goes to
  RouterScore score = RouterScore::softmax;
  bool normalises = false;  ///< weights of a token's experts are divided by their sum
  double scale = 1;         ///< factor on the weights, after that
  /// Experts are num_groups groups of neighbours, of which the limited_groups best can be chosen
  /// from. 0: all can.
  int64_t num_groups = 0;
  int64_t limited_groups = 0;
  GroupScore group_score = GroupScore::best_two;
  bool has_bias = false;    ///< the gate has a bias, zero at first
  bool is_float32 = false;  ///< the gate multiplies in fp32 where the run computes in 16 bits
  /// Change of an expert's bias in a step: balance without a loss. Wang et al., 2024
  /// (arXiv:2408.15664). 0: no step moves it.
  double balance_rate = 0;
  /// There is a bias even where no step moves it, for weights that were trained with one.
  bool keeps_bias = false;
  /// Coefficient of the loss of uneven load of each sequence: DeepSeek-V3, 2024 (arXiv:2412.19437),
  /// equations 17 to 20, over the tokens that are not padding (Batch::is_padding). 0: there is
  /// none.
  double balance_loss = 0;
  /// Coefficient of the mean square of logsumexp(logits) over the tokens that the main loss counts,
  /// which keeps logits small: Zoph et al., 2022 (arXiv:2202.08906), equation 5. 0: there is none.
  double z_loss = 0;
  /// An expert takes ceil(capacity_factor S k / E) tokens of each sequence of S, the first that
  /// choose it; the others' choices of it are dropped and count as zero (Fedus et al., 2021). 0:
  /// nothing is dropped.
  double capacity_factor = 0;
  /// Token t of the step's global batch (TokenPlaces::numbers) goes to experts t k, t k + 1, ...
  /// (mod E), whatever its scores: for timing. The same under every layout.
  bool forces_balance = false;
  Init init;  ///< of the gate

  /// Experts are chosen by score and bias.
  bool is_biased() const { return keeps_bias || balance_rate != 0; }
};

/// Of n tokens, in the order of the batch.
struct Routing {
  at::Tensor experts;  ///< int64 (n, k): of each token the best first
  at::Tensor weights;  ///< (n, k) in fp32, double for double; differentiable in x and the gate
  at::Tensor counts;   ///< int64 (E): tokens of each expert; n k in all
  /// int64 (m), ascending: the numbers t k + j of the choices that are carried out. Undefined: all
  /// are, and so are those that a dispatcher gets.
  at::Tensor kept = {};
};

/// x (B, S, D) -> scores (B, S, E) in fp32 (double for double) as a Module; `route` chooses by
/// them.
///
/// An expert is chosen by score plus bias and weighed by its score alone. Of equal ones the first
/// is taken. Choices are kept where activation checkpointing runs a layer again
/// (Operation::routing).
/// Children gate (replicated) and choice, whose output is Routing::experts as (B, S, k): there
/// loggers see the load (titan/observe.h).
///
/// The bias moves at commit, by what all ranks have counted over the step, each token once:
/// delta = rate * sign(mean - count), bias += delta - mean(delta). Padding is not counted.
/// Validation, recomputation, skipped and repeated steps count nothing.
class TITAN_API Router final : public Module, public StepModule {
 public:
  /// `bias` (E) in fp32: state of the layer that this one is a part of, which names it. Null
  /// exactly where options.is_biased() is false. Throws a config Error on top_k outside of 1 to
  /// num_experts and on groups that do not fit.
  Router(const RouterOptions& options, std::shared_ptr<Parameter> bias);
  ~Router() override;

  /// x (B, S, D). Runs through what goes around this layer, as every call of a module.
  Routing route(const at::Tensor& x, const Batch& batch);

  Linear& gate() { return gate_; }
  const RouterOptions& options() const { return options_; }

  /// Throws a config Error for a balance_loss or a capacity_factor where ranks hold parts of
  /// sequences.
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
