#include "core/plugin/flavor_preset.h"

#include <titan/suggest.h>

namespace titan::core {
namespace {

void check(const Value& preset, const Schema& schema, const std::string& path,
           std::vector<std::string>& problems) {
  std::vector<std::string> names;
  for (const Option& option : schema.options) names.push_back(option.name);
  for (const auto& [name, value] : preset.as_map()) {
    const Option* option = schema.find(name);
    if (!option) {
      const std::string hint = did_you_mean(name, names);
      problems.push_back("unknown option '" + path + name + "'" +
                         (hint.empty() ? "" : "; " + hint));
    } else if (const auto wrong = option->problem(value)) {
      problems.push_back("option '" + path + name + "' " + *wrong);
    } else if (option->table && value.is_map()) {
      check(value, *option->table, path + name + ".", problems);
    }
  }
}

}  // namespace

std::vector<std::string> preset_problems(const Flavor& flavor, const Schema& model_schema) {
  std::vector<std::string> problems;
  if (flavor.preset.is_map())
    check(flavor.preset, model_schema, "", problems);
  else if (!flavor.preset.is_null())
    problems.push_back("the preset is not a map of options");
  return problems;
}

}  // namespace titan::core
