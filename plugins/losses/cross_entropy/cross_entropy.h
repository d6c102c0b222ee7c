// Loss `cross_entropy`: cross entropy with label smoothing, z-loss and a soft cap of the logits.
#pragma once

#include <string>
#include <vector>

#include <titan/loss.h>

namespace titan::losses {

struct CrossEntropyOptions {
  double label_smoothing = 0;  // share of the target that is spread over the vocabulary
  double z_loss = 0;           // coefficient of logsumexp²
  double logit_softcap = 0;    // 0: none
};

/// Per token, of logits z = c·tanh(logits / c) where c = logit_softcap (Gemma 2: Riviere et al.,
/// 2024, section 2), lse = logsumexp(z), e = label_smoothing, V = vocabulary size:
///
///   (1 - e) (lse - z[label]) + e (lse - Σ z / V) + z_loss lse²
///
/// The first two are torch.nn.functional.cross_entropy(z, label, label_smoothing=e) (Szegedy et
/// al., 2016, section 7), the third is PaLM's (Chowdhery et al., 2022, section 5, coefficient
/// 1e-4).
///
/// Parts: "nll", Σ lse - z[label]; and with z_loss > 0 also "z_loss", Σ z_loss lse².
class CrossEntropy final : public Loss {
 public:
  CrossEntropy(const CrossEntropyOptions& options, LossContext context);

  std::vector<std::string> part_names() const override;
  RowsLoss of_rows(const at::Tensor& logits, const at::Tensor& labels) override;

 private:
  CrossEntropyOptions options_;
};

}  // namespace titan::losses
