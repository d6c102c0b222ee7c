#include "core/train/step/step_parts.h"

#include <set>
#include <string>
#include <utility>

#include <titan/error.h>

#include "core/config/selection/component_error.h"
#include "core/train/optimizer/optimizer_set.h"
#include "core/train/step/sequential_executor.h"

namespace titan::core {
namespace {

std::string kind_and_name(const Selection& chosen) {
  return chosen.kind + " '" + chosen.name + "'";
}

/// Reports the attempts of a step to modules, as one of the reducers.
class ModuleRuns final : public GradientReducer {
 public:
  explicit ModuleRuns(std::vector<nn::StepModule*> modules) : modules_(std::move(modules)) {}
  void begin_step() override {
    for (nn::StepModule* module : modules_) module->begin_run();
  }
  void start_microbatch(bool) override {}
  void finish_gradients() override {}

 private:
  std::vector<nn::StepModule*> modules_;
};

}  // namespace

void StepParts::add(ModelTransform& transform, const Selection& chosen) {
  on_behalf_of(chosen, [&] {
    if (auto* splitter = dynamic_cast<BatchSplitter*>(&transform)) splitters_.push_back(splitter);
    if (auto* executor = dynamic_cast<StepExecutor*>(&transform)) add_executor(*executor, chosen);
    if (auto* reducer = dynamic_cast<GradientReducer*>(&transform)) reducers_.push_back(reducer);
    if (auto* member = dynamic_cast<StepMember*>(&transform)) add_member(*member, chosen);
    if (auto* after = dynamic_cast<AfterOptimizerStep*>(&transform)) after_.push_back(after);
    if (auto* exports = dynamic_cast<ExportTransform*>(&transform)) exports_.push_back(exports);
    if (auto* stateful = dynamic_cast<StatefulOptimizer*>(&transform)) {
      stateful->seal_states();
      stateful_.push_back(stateful);
    }
    if (auto* replicas = dynamic_cast<ReplicaMember*>(&transform)) {
      TITAN_CHECK(!replicas_, config, kind_and_name(chosen),
                  " is the second transform that connects replica groups; choose one");
      replicas_ = replicas;
    }
  });
}

void StepParts::add(Optimizer& optimizer, const Selection& chosen) {
  if (auto* joined = dynamic_cast<JoinedOptimizers*>(&optimizer))
    for (const auto& member : joined->members()) add(*member, chosen);
  if (auto* member = dynamic_cast<StepMember*>(&optimizer))
    on_behalf_of(chosen, [&] { add_member(*member, chosen); });
}

void StepParts::add(Watcher& watcher, const Selection& chosen) {
  on_behalf_of(chosen, [&] {
    if (GradientReducer* follower = watcher.follower()) add_follower(*follower);
    if (ExecutorWrapper* wrapper = watcher.wrapper()) add_executor(*wrapper, chosen);
  });
}

void StepParts::add_modules(ModelPart& part, const dist::Mesh& mesh, const Selection& model) {
  std::set<const StepMember*> seen;  // a module may occur in two places
  on_behalf_of(model, [&] {
    part.visit_modules([&](const std::string&, nn::Module& module) {
      auto* member = dynamic_cast<StepMember*>(&module);
      if (!member || !seen.insert(member).second) return;
      add_member(*member, model);
      auto* with_runs = dynamic_cast<nn::StepModule*>(member);
      if (!with_runs) return;
      with_runs->connect(mesh);
      modules_.push_back(with_runs);
    });
  });
}

void StepParts::add_executor(StepExecutor& executor, const Selection& chosen) {
  if (auto* wrapper = dynamic_cast<ExecutorWrapper*>(&executor)) {
    require_commits(chosen, wrapper->undoes_steps());
    wrappers_.push_back({wrapper, &chosen});
    return;
  }
  TITAN_CHECK(!executor_, config, kind_and_name(*executes_), " and ", kind_and_name(chosen),
              " both run the microbatches of a step; choose one of them, or let one wrap the other "
              "(titan::ExecutorWrapper)");
  executor_ = &executor;
  executes_ = &chosen;
}

void StepParts::add_member(StepMember& member, const Selection& chosen) {
  require_commits(chosen, member.undoes_steps());
  members_.push_back(&member);
}

void StepParts::require_commits(const Selection& chosen, bool undoes_steps) const {
  TITAN_CHECK(!updates_early_ || !undoes_steps, config, kind_and_name(chosen),
              " may repeat or skip a step, but with "
              "optimizer.early_step_in_backward = true weights change inside the backward and no "
              "step can be undone; switch off one of them");
}

StepExecutor& StepParts::connect(ModelPart& part, Device& device, dist::Recorder& recorder,
                                 StepWorkers& workers) {
  if (updates_early_ && reducers_.empty()) {
    workers.local_gradients = std::make_unique<LocalGradients>(part.parameters());
    reducers_.push_back(workers.local_gradients.get());
  }
  if (!modules_.empty()) {
    workers.module_runs = std::make_unique<ModuleRuns>(modules_);
    reducers_.push_back(workers.module_runs.get());
  }
  if (!executor_) {
    workers.sequential = std::make_unique<SequentialExecutor>();
    executor_ = workers.sequential.get();
  }
  reducers_.insert(reducers_.end(), followers_.begin(), followers_.end());
  const StepContext context{part, device, splitters_, reducers_, recorder};
  on_behalf_of(executes_ ? *executes_ : Selection{}, [&] { executor_->connect(context); });
  StepExecutor* outermost = executor_;
  for (const Wrapper& next : wrappers_)
    on_behalf_of(*next.chosen, [&] {
      next.wrapper->wrap(*outermost);
      next.wrapper->connect(context);
      outermost = next.wrapper;
    });
  return *outermost;
}

}  // namespace titan::core
