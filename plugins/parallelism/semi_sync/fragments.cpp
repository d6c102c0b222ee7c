#include "fragments.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <titan/error.h>

namespace titan::semi_sync {
namespace {

constexpr const char* kModules = "fault_tolerance.module_fqns_per_model_fragment";

/// "layers.3.attention.wq.weight": "layers.3"; empty for a parameter outside of layers.
std::string_view layer_of(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {};
  return name.substr(0, name.find('.', kLayers.size()));
}

/// Consecutive parameters that are not cut apart: the number of the unit of each name.
std::vector<size_t> units_of(const std::vector<std::string>& names) {
  const bool has_layers = std::any_of(
      names.begin(), names.end(), [](const std::string& name) { return !layer_of(name).empty(); });
  const auto unit_name = [&](std::string_view name) {
    return has_layers ? layer_of(name) : name.substr(0, name.find('.'));
  };
  std::vector<size_t> units;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_new = i > 0 && unit_name(names[i]) != unit_name(names[i - 1]);
    units.push_back(i == 0 ? 0 : units.back() + (is_new ? 1 : 0));
  }
  return units;
}

bool is_in(std::string_view name, std::string_view module) {
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

}  // namespace

std::vector<size_t> fragments_by_layers(const std::vector<std::string>& names,
                                        int64_t num_fragments) {
  const std::vector<size_t> units = units_of(names);
  const size_t num_units = units.empty() ? 0 : units.back() + 1;
  const auto fragments = static_cast<size_t>(num_fragments);
  TITAN_CHECK(fragments == 1 || fragments <= num_units, config,
              "fault_tolerance.num_fragments = ", num_fragments, ", but the model has ", num_units,
              " parts that are not cut: its layers, and what comes before and after them");
  const size_t each = num_units / fragments, more = num_units % fragments;
  std::vector<size_t> found;
  for (const size_t unit : units) {
    const size_t in_larger = more * (each + 1);
    found.push_back(unit < in_larger ? unit / (each + 1)
                                     : more + (unit - in_larger) / std::max<size_t>(1, each));
  }
  return found;
}

std::vector<size_t> fragments_by_modules(const std::vector<std::string>& names,
                                         const std::vector<std::vector<std::string>>& modules) {
  std::string problems;
  for (size_t f = 0; f < modules.size(); ++f)
    for (const std::string& module : modules[f])
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return is_in(name, module); }))
        problems += "\n  fragment " + std::to_string(f) + " names '" + module +
                    "', which the model does not have";
  std::vector<size_t> found;
  for (const std::string& name : names) {
    std::optional<size_t> fragment;
    for (size_t f = 0; f < modules.size(); ++f) {
      if (std::none_of(modules[f].begin(), modules[f].end(),
                       [&](const std::string& module) { return is_in(name, module); }))
        continue;
      if (fragment)
        problems += "\n  '" + name + "' is in the fragments " + std::to_string(*fragment) +
                    " and " + std::to_string(f);
      fragment = f;
    }
    if (!fragment) problems += "\n  '" + name + "' is in no fragment";
    found.push_back(fragment.value_or(0));
  }
  TITAN_CHECK(problems.empty(), config, kModules, " does not fit the model:", problems);
  return found;
}

}  // namespace titan::semi_sync
