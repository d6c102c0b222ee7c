// Loss `distillation`: the model (student) learns the next-token distribution of a reference model
// (teacher).
#pragma once

#include <string>
#include <vector>

#include <titan/reference_loss.h>

namespace titan::losses {

enum class Divergence { forward, reverse };

struct DistillationOptions {
  double temperature = 1;                       // of both distributions
  Divergence divergence = Divergence::forward;  // KL(teacher || student), or the other way round
  double alpha = 0;                             // weight of the cross entropy with the labels
};

/// Per token with a target, of the logits z of the student and y of the teacher, T = temperature,
/// p = softmax(y / T), q = softmax(z / T):
///
///   (1 - alpha) T² KL + alpha (-log softmax(z)[label])
///   forward: KL = Σ p (log p - log q),  reverse: KL = Σ q (log q - log p)
///
/// Hinton et al., 2015, sections 2 and 2.1 (T² keeps the size of the gradients independent of T);
/// reverse: Gu et al., 2024 (MiniLLM).
///
/// Parts: "nll", Σ -log softmax(z)[label], and "kl", Σ T² KL.
class Distillation final : public DistillationLoss {
 public:
  Distillation(const DistillationOptions& options, LossContext context);

  std::vector<std::string> part_names() const override;
  RowsLoss of_rows_beside(const at::Tensor& logits, const at::Tensor& reference,
                          const at::Tensor& labels) override;

 private:
  DistillationOptions options_;
};

}  // namespace titan::losses
