#include "grouped_choice.h"

#include <algorithm>

#include <titan/error.h>

#include "named_layers.h"

namespace titan::quantized {
namespace {

struct FoundGrouped {
  std::vector<std::string> paths;
  std::vector<nn::GroupedLinear*> layers;
};

FoundGrouped find_grouped(ModelPart& part) {
  FoundGrouped found;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* layer = dynamic_cast<nn::GroupedLinear*>(&module);
    if (!layer) return;
    found.paths.push_back(path);
    found.layers.push_back(layer);
  });
  return found;
}

void check_fqns(const std::vector<std::string>& paths, const GroupedRules& rules) {
  TITAN_CHECK(!rules.fqns.empty(), config, rules.converter,
              ".fqns is empty: nothing would be converted; name layers of experts by a part of "
              "their path, such as 'experts' of '",
              paths.front(), "'");
  for (const std::string& fqn : rules.fqns) {
    const auto is_named = [&](const std::string& path) { return holds(path, fqn); };
    if (!fqn.empty() && std::any_of(paths.begin(), paths.end(), is_named)) continue;
    fail(ErrorKind::config, rules.converter, ".fqns: '", fqn, "' matches no layer of experts; ",
         hint_for(fqn, paths, "name"));
  }
}

void check_divides(nn::GroupedLinear& layer, const std::string& path, const GroupedRules& rules) {
  const std::vector<int64_t>& shape = layer.weight().global_shape();
  TITAN_CHECK(shape[1] % rules.multiple == 0 && shape[2] % rules.multiple == 0, config,
              rules.converter, ": an expert of '", path, "' is ", shape[1], " x ", shape[2],
              ", but both must be multiples of ", rules.multiple, "; do not name the layer in ",
              rules.converter, ".fqns");
}

}  // namespace

GroupedChoice choose_grouped(ModelPart& part, const GroupedRules& rules) {
  const FoundGrouped found = find_grouped(part);
  TITAN_CHECK(!found.layers.empty(), config, rules.converter,
              ": the model has no layers of experts; take it out of model.converters");
  check_fqns(found.paths, rules);

  GroupedChoice chosen;
  for (size_t i = 0; i < found.layers.size(); ++i) {
    const std::string& path = found.paths[i];
    if (std::none_of(rules.fqns.begin(), rules.fqns.end(),
                     [&](const std::string& fqn) { return holds(path, fqn); }))
      continue;
    check_divides(*found.layers[i], path, rules);
    check_owners(found.layers[i]->kernel_owners(), path, rules.converter,
                 "do not name the layer in " + rules.converter + ".fqns");
    chosen.layers.push_back(found.layers[i]);
  }
  const size_t num_others = found.layers.size() - chosen.layers.size();
  chosen.summary = rules.converter + " (" + rules.recipe + ") converts " +
                   std::to_string(chosen.layers.size()) + " layers of experts";
  if (num_others > 0)
    chosen.summary += ", " + std::to_string(num_others) + " not named by fqns stay unchanged";
  return chosen;
}

}  // namespace titan::quantized
