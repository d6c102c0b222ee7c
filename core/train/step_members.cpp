#include "core/train/step_members.h"

#include <utility>

#include "core/checkpoint/checkpointer.h"
#include "core/train/graph_rules.h"
#include "core/train/optimizer/finite_checks.h"
#include "core/train/optimizer/gradient_clipper.h"
#include "core/train/step/sequential_executor.h"
#include "core/train/step/step_counters.h"

namespace titan::core {
namespace {

/// Whether loss and norm may stay on the device: the device has its own memory, and only the
/// trainer reads the numbers of a step. A plugin's member or executor wrapper may read them;
/// members that repeat or skip steps must.
bool may_hold_numbers(const Run& run) {
  const c10::Device device = run.device->device();
  return !device.is_cpu() && !device.is_meta() && run.executor == run.innermost_executor &&
         run.members.empty() && !run.watchers.read_numbers() && !run.early_optimizer &&
         !run.loss_scaler->undoes_steps();
}

/// Steps that are logged or saved, locally too, and the last one.
std::function<bool(int64_t)> looked_at(const JobConfig& config) {
  return [&config](int64_t step) {
    const CheckpointSection& checkpoint = config.checkpoint;
    const bool is_saved =
        checkpoint.enable && (is_save_due(checkpoint, step) || is_local_save_due(checkpoint, step));
    return step == 1 || step % config.metrics.log_freq == 0 || step >= config.training.steps ||
           is_saved;
  };
}

}  // namespace

StepMembers::StepMembers(Run& run, const JobConfig& config, BeforeUpdate before_update,
                         StepMember* metrics) {
  const double max_norm = config.training.max_norm;
  const bool updates_early = run.early_optimizer != nullptr;
  order_.plugins = run.members;
  order_.replicas = run.replicas;

  DeviceScalars* held = nullptr;
  if (may_hold_numbers(run)) {
    auto numbers = std::make_unique<DeviceScalars>(looked_at(config));
    held = numbers.get();
    add(order_.first, std::move(numbers));
    device_scalars_ = held;
  }
  if (metrics) order_.first.push_back(metrics);
  if (auto graph = make_step_graph(run, config))
    static_cast<SequentialExecutor&>(*run.workers.sequential).replay_by(std::move(graph));
  add(order_.first, std::make_unique<StepCounters>(run.state, *run.lr_scheduler));
  for (StepMember* member : run.watchers.members()) order_.first.push_back(member);
  add(order_.first, std::make_unique<FiniteLoss>(/*are_weights_unchanged=*/!updates_early));
  order_.first.push_back(run.loss_scaler.get());
  if (!updates_early)
    add(order_.first, std::make_unique<WaitForCheckpointCopy>(std::move(before_update)));

  if (updates_early) {
    add(order_.last, std::make_unique<EarlyStep>(*run.early_optimizer, std::move(before_update)));
  } else {
    for (StepMember* member : run.watchers.late_members()) order_.last.push_back(member);
    auto update = std::make_unique<OptimizerStep>(*run.optimizer);
    // if numbers may be held, only the optimizer reads gradients after they are clipped
    add(order_.last,
        std::make_unique<GradientClipper>(*run.part, run.mesh, run.device->device(), max_norm, held,
                                          held ? update.get() : nullptr));
    add(order_.last, std::make_unique<FiniteNorm>());
    add(order_.last, std::move(update));
  }
  add(order_.last, std::make_unique<AfterOptimizerWork>(run.after_optimizer_step));
}

void StepMembers::add(std::vector<StepMember*>& place, std::unique_ptr<StepMember> member) {
  place.push_back(member.get());
  own_.push_back(std::move(member));
}

}  // namespace titan::core
