// The optimizers of a run: one, or one per group of parameters ([optimizer.groups.<name>]).
#pragma once

#include <memory>
#include <vector>

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/optimizer.h>
#include <titan/scales_gradients.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Several optimizers as one: it has all their states, and the learning rate of the first.
class JoinedOptimizers : public Optimizer, public StatefulOptimizer {
 public:
  /// At least one.
  explicit JoinedOptimizers(std::vector<std::unique_ptr<Optimizer>> members);

  double lr() const override { return members_.front()->lr(); }
  const std::vector<std::unique_ptr<Optimizer>>& members() const { return members_; }

 private:
  std::vector<std::unique_ptr<Optimizer>> members_;
};

/// Steps all members. Scales gradients if all members can.
class OptimizerSet final : public JoinedOptimizers, public ScalesGradients {
 public:
  using JoinedOptimizers::JoinedOptimizers;
  void step(double lr_factor) override;
  bool scales_gradients() const override;
  void step_scaled(double lr_factor, const at::Tensor& scale) override;
};

/// Throws a config Error that lists every pattern of a group that matches no parameter of the
/// model.
void check_groups(const JobConfig& config, const std::vector<ParameterInfo>& parameters);

/// The optimizer of each parameter is that of the first group with a pattern for its name, else the
/// run's own. `context.parameters` are those of this rank. Selections without a name are left out;
/// null when all are.
std::unique_ptr<Optimizer> make_optimizer(const JobConfig& config, Registry& registry,
                                          const OptimizerContext& context);

/// One optimizer per parameter, in the order of `context.parameters`: for updates inside backward.
std::vector<std::unique_ptr<Optimizer>> make_single_optimizers(const JobConfig& config,
                                                               Registry& registry,
                                                               const OptimizerContext& context);

}  // namespace titan::core
