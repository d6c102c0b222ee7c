// Loss `dpo`, direct preference optimisation: the model learns to prefer chosen answers to rejected
// ones more than a reference model does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/reference_loss.h>
#include <titan/sequence_loss.h>

namespace titan::losses {

enum class DpoVariant { sigmoid, ipo, hinge };

struct DpoOptions {
  double beta = 0.1;  // strength of the tie to the reference model
  DpoVariant variant = DpoVariant::sigmoid;
  double label_smoothing = 0;   // probability that chosen and rejected are swapped in the data
  double rpo_alpha = 0;         // weight of the chosen answer's own loss per token
  bool reference_free = false;  // compare with a model that finds all answers equally likely
};

/// Loss of a pair of a chosen (w) and a rejected (l) answer. π and ρ: log-likelihoods by the model
/// and by the reference model, summed over the tokens with a target; b = beta, e = label_smoothing:
///
///   r_w = π_w - ρ_w,  r_l = π_l - ρ_l,  d = r_w - r_l
///   sigmoid: -(1 - e) log σ(b d) - e log σ(-b d)   Rafailov et al., 2023, eq. 7; Mitchell, 2023
///   ipo:     (d - 1 / (2 b))²                      Azar et al., 2023, eq. 17
///   hinge:   max(0, 1 - b d)                       Zhao et al., 2023 (SLiC-HF)
///   and for each: - rpo_alpha π_w / |w|            Pang et al., 2024, eq. 1
///
/// ipo takes means over tokens instead of sums, as in its paper and in TRL. The names are those of
/// TRL's loss_type. The loss is the mean over pairs.
///
/// Parts, means over pairs, as TRL logs them: "rewards/chosen" b r_w, "rewards/rejected" b r_l,
/// "rewards/margins" their difference, "rewards/accuracies" the share of pairs whose r_w > r_l,
/// "logps/chosen" π_w and "logps/rejected" π_l.
class Dpo final : public SequenceLoss, public ComparesWithReference {
 public:
  /// Throws a config Error: label_smoothing with another variant than sigmoid.
  Dpo(const DpoOptions& options, LossContext context);

  std::vector<std::string> part_names() const override;
  RowsLoss of_sequences(const at::Tensor& log_likelihoods, const Batch& batch) override;
  int64_t num_terms(const Batch& batch) const override;
  bool compares_answers() const override { return true; }
  ReferenceOutput reference_output() const override;

 private:
  at::Tensor of_differences(const at::Tensor& difference) const;

  DpoOptions options_;
};

}  // namespace titan::losses
