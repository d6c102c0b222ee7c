// SOAP: Adam in the eigenbasis of Shampoo's preconditioner. Vyas et al., 2024 (arXiv:2409.11321), algorithm 3.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/optimizer.h>

namespace soap {

struct SoapOptions {
  double lr = 3e-3;
  double beta1 = 0.95;
  double beta2 = 0.95;
  std::optional<double> shampoo_beta;  // unset: beta2
  double eps = 1e-8;
  double weight_decay = 0.01;  // decoupled
  int64_t precondition_frequency = 10;
  int64_t max_precond_dim = 1024;
};

/// With G the gradient of a matrix W (m, n) and the running means L of G Gᵀ and R of Gᵀ G:
/// M <- beta1 M + (1 - beta1) G, V <- beta2 V + (1 - beta2) (Q_Lᵀ G Q_R)²,
/// W <- (1 - lr weight_decay) (W - lr Q_L (Q_Lᵀ M Q_R / (sqrt(V) + eps)) Q_Rᵀ), with Adam's bias
/// corrections. Q_L and Q_R are the eigenvectors of L and R after the first gradient, which changes
/// no weight (a small ramp on their diagonals makes them unique); every `precondition_frequency` steps they become the QR factor of L Q_L and R Q_R. A
/// side longer than `max_precond_dim` has no basis. Parameters that are no matrices are updated by
/// Adam.
///
/// A matrix that is sharded over ranks is gathered for its update, and every rank computes the
/// whole update. M and V are sharded like the weight; L, R, Q_L and Q_R are whole on every rank.
class Soap final : public titan::Optimizer, public titan::StatefulOptimizer {
 public:
  Soap(const SoapOptions& options, const titan::OptimizerContext& context);

  void step(double lr_factor) override;
  double lr() const override { return options_.lr; }

 private:
  /// The states of one side of a matrix: L and Q_L, or R and Q_R.
  struct Side {
    at::Tensor mean, basis;
  };
  std::optional<Side> side(size_t index, int dim);
  void update(size_t index, double lr);
  void update_means(const at::Tensor& gradient, std::optional<Side>& left, std::optional<Side>& right);

  SoapOptions options_;
  const titan::dist::Mesh* mesh_;
  std::vector<titan::Parameter*> parameters_;
  std::vector<titan::Parameter*> of_side_[2];    // the matrices with a left, and with a right basis
  std::vector<std::optional<size_t>> place_[2];  // of each parameter in of_side_
  titan::OptimizerState &mean_, &square_, &steps_;
  titan::OptimizerState* means_[2];
  titan::OptimizerState* bases_[2];
};

}  // namespace soap
