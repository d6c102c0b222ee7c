#include "core/train/optimizer/optimizer_set.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/name_pattern.h>
#include <titan/suggest.h>

#include "core/config/selection/make_selected.h"
#include "core/config/sources/key_places.h"

namespace titan::core {
namespace {

const Selection& selection_for(const JobConfig& config, std::string_view parameter) {
  for (const OptimizerGroup& group : config.optimizer_groups)
    if (matches_any(parameter, group.patterns)) return group.optimizer;
  return config.optimizer;
}

/// An optimizer whose states are all declared and sealed. Null if the selection has no name.
std::unique_ptr<Optimizer> make_complete(Registry& registry, const Selection& selection,
                                         const OptimizerContext& context) {
  if (selection.name.empty()) return nullptr;
  auto optimizer = make_selected<Optimizer>(registry, selection, context);
  if (auto* stateful = dynamic_cast<StatefulOptimizer*>(optimizer.get())) stateful->seal_states();
  return optimizer;
}

}  // namespace

JoinedOptimizers::JoinedOptimizers(std::vector<std::unique_ptr<Optimizer>> members)
    : members_(std::move(members)) {
  for (const auto& member : members_)
    if (auto* stateful = dynamic_cast<StatefulOptimizer*>(member.get())) add_states_of(*stateful);
}

void OptimizerSet::step(double lr_factor) {
  for (const auto& member : members()) member->step(lr_factor);
}

bool OptimizerSet::scales_gradients() const {
  return std::all_of(members().begin(), members().end(), [](const auto& member) {
    const auto* scales = dynamic_cast<const ScalesGradients*>(member.get());
    return scales && scales->scales_gradients();
  });
}

void OptimizerSet::step_scaled(double lr_factor, const at::Tensor& scale) {
  for (const auto& member : members())
    dynamic_cast<ScalesGradients&>(*member).step_scaled(lr_factor, scale);
}

void check_groups(const JobConfig& config, const std::vector<ParameterInfo>& parameters) {
  Diagnostics unused;
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : parameters)
    if (!parameter.is_state()) names.push_back(parameter.name);
  for (const OptimizerGroup& group : config.optimizer_groups)
    for (size_t i = 0; i < group.patterns.size(); ++i) {
      const std::string& pattern = group.patterns[i];
      const bool is_used = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return matches_pattern(name, pattern);
      });
      if (is_used) continue;
      const std::string hint = did_you_mean(pattern, names);
      const std::string key = "optimizer.groups." + group.name + ".patterns";
      unused.error(config.places ? config.places->item_place(key, i) : SourceRange{},
                   key + ": no parameter of the model has a name like '" + pattern +
                       "' (* stands for any text)",
                   hint, "titan describe model " + config.model_plugin.name);
    }
  if (!unused.can_start()) throw ConfigError(unused);
}

std::unique_ptr<Optimizer> make_optimizer(const JobConfig& config, Registry& registry,
                                          const OptimizerContext& context) {
  if (config.optimizer_groups.empty()) return make_complete(registry, config.optimizer, context);
  std::vector<const Selection*> selections = {&config.optimizer};
  for (const OptimizerGroup& group : config.optimizer_groups)
    selections.push_back(&group.optimizer);
  std::vector<std::unique_ptr<Optimizer>> members;
  for (const Selection* selection : selections) {
    OptimizerContext own = context;
    std::erase_if(own.parameters, [&](const Parameter* parameter) {
      return &selection_for(config, parameter->name()) != selection;
    });
    if (auto member = make_complete(registry, *selection, own))
      members.push_back(std::move(member));
  }
  if (members.empty()) return nullptr;
  return std::make_unique<OptimizerSet>(std::move(members));
}

std::vector<std::unique_ptr<Optimizer>> make_single_optimizers(const JobConfig& config,
                                                               Registry& registry,
                                                               const OptimizerContext& context) {
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (Parameter* parameter : context.parameters) {
    OptimizerContext own = context;
    own.parameters = {parameter};
    if (auto one = make_complete(registry, selection_for(config, parameter->name()), own))
      optimizers.push_back(std::move(one));
  }
  return optimizers;
}

}  // namespace titan::core
