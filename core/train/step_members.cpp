#include "core/train/step_members.h"

#include <utility>

#include "core/train/finite_checks.h"
#include "core/train/gradient_clipper.h"
#include "core/train/parameter_statistics.h"
#include "core/train/step_counters.h"

namespace titan::core {

StepMembers::StepMembers(Run& run, const JobConfig& config, BeforeUpdate before_update) {
  const double max_norm = config.training.max_norm;
  const bool updates_early = run.early_optimizer != nullptr;
  order_.plugins = run.members;

  add(order_.first, std::make_unique<StepCounters>(run.state, *run.lr_scheduler));
  if (run.fingerprints)
    add(order_.first, std::make_unique<TokenFingerprints>(*run.fingerprints, run.first_row));
  if (run.observations) order_.first.push_back(run.observations.get());
  if (run.debugging)
    for (StepMember* member : run.debugging->members()) order_.first.push_back(member);
  add(order_.first, std::make_unique<FiniteLoss>(/*are_weights_unchanged=*/!updates_early));
  order_.first.push_back(run.loss_scaler.get());
  if (!updates_early) add(order_.first, std::make_unique<EndOfCopies>(std::move(before_update)));

  if (updates_early) {
    add(order_.last, std::make_unique<EarlyStep>(*run.early_optimizer, std::move(before_update)));
  } else {
    if (ParameterStatistics::are_asked_for(config.metrics) && !run.device->device().is_meta())
      add(order_.last, std::make_unique<ParameterStatistics>(config.metrics, *run.part, run.mesh,
                                                             run.device->device(), run.loggers));
    add(order_.last,
        std::make_unique<GradientClipper>(*run.part, run.mesh, run.device->device(), max_norm));
    add(order_.last, std::make_unique<FiniteNorm>());
    add(order_.last, std::make_unique<OptimizerStep>(*run.optimizer));
  }
  add(order_.last, std::make_unique<AfterOptimizerWork>(run.after_optimizer_step));
}

void StepMembers::add(std::vector<StepMember*>& place, std::unique_ptr<StepMember> member) {
  place.push_back(member.get());
  own_.push_back(std::move(member));
}

}  // namespace titan::core
