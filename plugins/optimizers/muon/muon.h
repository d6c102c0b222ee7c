// Optimizer `Muon`: orthogonalized momentum for hidden matrices, AdamW for all other parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/optimizer.h>

#include "../common/adam_update.h"
#include "matrix_exchange.h"
#include "newton_schulz.h"

namespace titan::muon {

/// How the learning rate depends on a matrix of `rows` and `columns`.
enum class AdjustLr {
  original,         ///< times sqrt(max(1, rows / columns)). Jordan et al., 2024
  match_rms_adamw,  ///< times 0.2 sqrt(max(rows, columns)): updates as large as AdamW's. Liu et
                    ///< al., 2025
};

enum class IterationDtype {
  automatic,  ///< bfloat16, but float32 on the CPU, where products of bfloat16 can take minutes
  bfloat16,
  float32
};

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::vector<double> ns_coefficients = {3.4445, -4.7750, 2.0315};
  int64_t ns_steps = 5;
  double eps = 1e-7;
  IterationDtype ns_dtype = IterationDtype::automatic;
  AdjustLr adjust_lr = AdjustLr::original;

  std::vector<std::string> adamw_patterns = {"tok_embeddings.*", "output.*", "*norm*", "*bias"};
  double adamw_lr = 8e-4;
  double adamw_beta1 = 0.9;
  double adamw_beta2 = 0.95;
  double adamw_eps = 1e-8;
  double adamw_weight_decay = 0.1;
};

/// With g the gradient: b <- b + (1-momentum)(g - b); u = nesterov ? g + momentum (b - g) : b;
/// p <- p (1 - lr weight_decay) - lr adjusted orthogonalize(u). As torch.optim.Muon.
///
/// A parameter (n, rows, columns) is a stack of matrices, the experts of a layer, each of which is
/// updated by itself.
///
/// A matrix that is sharded over ranks is gathered for its update: each rank of the group that
/// sharded last updates some of the matrices. The result is bitwise that of one rank. A stack that
/// is sharded along its matrices has whole matrices on each rank and needs no communication.
class Muon final : public Optimizer, public StatefulOptimizer {
 public:
  Muon(const MuonOptions& options, const OptimizerContext& context);

  double lr() const override { return options_.lr; }
  void step(double lr_factor) override;

 private:
  /// Matrices, or stacks of them, of one shape and one sharding, in the order of the model.
  struct Family {
    MatrixExchange exchange;
    std::vector<size_t> members;
  };

  at::Tensor update_of(size_t index);
  void step_family(const Family& family, double lr);
  void step_matrices(const Family& family, const std::vector<size_t>& members, double lr);
  void step_stack(const Family& family, size_t index, double lr);
  void move(size_t index, const at::Tensor& direction, double lr);
  double adjusted(double lr, const std::vector<int64_t>& shape) const;

  MuonOptions options_;
  NewtonSchulz newton_schulz_;
  std::vector<Parameter*> matrices_;   // and stacks
  OptimizerState* buffers_ = nullptr;  // of matrices_
  std::vector<Family> families_;
  std::unique_ptr<optimizers::AdamUpdate> adamw_;
};

}  // namespace titan::muon
