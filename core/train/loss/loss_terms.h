// The divisor of a run's loss: tokens, or the terms of a loss of sequences, whose divisor is made
// to fit code that divides by tokens. Used by assembly, metrics and validation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/sequence_loss.h>
#include <titan/transform.h>

namespace titan::core {

/// The number of tokens with a target or, of a SequenceLoss, of its terms.
class LossTerms {
 public:
  explicit LossTerms(std::shared_ptr<const SequenceLoss> loss = nullptr) : loss_(std::move(loss)) {}

  /// Of this rank's microbatches. On simulated ranks, whose labels have no values, the number of
  /// tokens.
  int64_t local(const StepBatches& batches) const;
  /// Of the whole step. Collective over dp for a SequenceLoss, else known already.
  int64_t global(const StepBatches& batches, const dist::Mesh& mesh, c10::Device device) const;
  /// Of the whole step over all replica groups.
  int64_t global_of_replicas(const StepBatches& batches, const dist::Mesh& mesh,
                             c10::Device device) const;

 private:
  std::shared_ptr<const SequenceLoss> loss_;
};

/// Heads compute this in place of a SequenceLoss: the loss times the step's tokens per term. The
/// division by tokens then gives the loss per term. Auxiliary losses of layers stay sums that are
/// divided by tokens. The parts are unchanged.
class LossPerTerm final : public SequenceLoss {
 public:
  explicit LossPerTerm(std::shared_ptr<SequenceLoss> loss) : loss_(std::move(loss)) {}

  void set_tokens_per_term(double ratio) { tokens_per_term_ = ratio; }

  std::vector<std::string> part_names() const override { return loss_->part_names(); }
  RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) override;
  int64_t num_terms(const Batch& batch) const override { return loss_->num_terms(batch); }

 private:
  std::shared_ptr<SequenceLoss> loss_;
  double tokens_per_term_ = 1;
};

/// Counts the terms of each attempt of a step before heads need them. A step without terms has loss
/// 0.
class TermCounter final : public ExecutorWrapper {
 public:
  /// `mesh` outlives this.
  TermCounter(LossTerms terms, std::shared_ptr<LossPerTerm> loss, const dist::Mesh& mesh,
              c10::Device device)
      : terms_(std::move(terms)), loss_(std::move(loss)), mesh_(mesh), device_(device) {}

  StepLoss forward_backward(const StepBatches& batches) override;
  StepLoss forward(const StepBatches& batches) override;

 private:
  void set_ratio(const StepBatches& batches, int64_t terms);

  LossTerms terms_;
  std::shared_ptr<LossPerTerm> loss_;
  const dist::Mesh& mesh_;
  c10::Device device_;
};

}  // namespace titan::core
