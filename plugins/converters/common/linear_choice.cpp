#include "linear_choice.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/nn/head.h>

#include "named_layers.h"

namespace titan::quantized {
namespace {

struct Found {
  std::string path;
  nn::Linear* linear = nullptr;  // null: the head
};

std::vector<Found> find_products(ModelPart& part) {
  std::vector<Found> found;
  part.visit_modules([&](const std::string& path, nn::Module& module) {
    auto* linear = dynamic_cast<nn::Linear*>(&module);
    if (linear || dynamic_cast<nn::OutputHead*>(&module)) found.push_back({path, linear});
  });
  return found;
}

std::vector<std::string> paths_of(const std::vector<Found>& found) {
  std::vector<std::string> paths;
  for (const Found& product : found) paths.push_back(product.path);
  return paths;
}

void check_filters(const std::vector<Found>& found, const ChoiceRules& rules) {
  for (const std::string& filter : rules.filters) {
    const auto is_held = [&](const Found& product) { return holds(product.path, filter); };
    if (!filter.empty() && std::any_of(found.begin(), found.end(), is_held)) continue;
    fail(ErrorKind::config, rules.converter, ".filter_fqns: '", filter,
         filter.empty() ? "' matches every layer, so nothing would be converted"
                        : "' matches no linear layer",
         "; ", hint_for(filter, paths_of(found), "filter"));
  }
}

std::string count(size_t number, const std::string& why) {
  return number == 0 ? "" : ", " + std::to_string(number) + " " + why;
}

}  // namespace

Choice choose_linears(ModelPart& part, const ChoiceRules& rules) {
  const std::vector<Found> found = find_products(part);
  TITAN_CHECK(!found.empty(), config, rules.converter, ": the model has no linear layers");
  check_filters(found, rules);

  Choice chosen;
  size_t num_filtered = 0, num_unfit = 0, num_small = 0;
  for (const auto& [path, linear] : found) {
    if (!linear) continue;
    const int64_t out = linear->weight().global_shape()[0], in = linear->weight().global_shape()[1];
    if (std::any_of(rules.filters.begin(), rules.filters.end(),
                    [&path = path](const std::string& filter) { return holds(path, filter); })) {
      ++num_filtered;
    } else if (out % rules.multiple != 0 || in % rules.multiple != 0) {
      ++num_unfit;
    } else if (rules.is_too_small && rules.is_too_small(out, in)) {
      ++num_small;
    } else {
      check_owners(linear->kernel_owners(), path, rules.converter,
                   "name the layer in " + rules.converter + ".filter_fqns");
      chosen.linears.push_back(linear);
    }
  }
  const std::string others =
      count(num_filtered, "excluded by filter_fqns") +
      count(num_unfit, "whose dimensions are not multiples of " + std::to_string(rules.multiple)) +
      count(num_small, "too small for a speedup");
  TITAN_CHECK(!chosen.linears.empty(), config, rules.converter, " has nothing to convert among ",
              num_filtered + num_unfit + num_small, " linear layers", others,
              "; take it out of model.converters or change filter_fqns");
  chosen.summary = rules.converter + " (" + rules.recipe + ") converts " +
                   std::to_string(chosen.linears.size()) + " linear layers" + others;
  return chosen;
}

}  // namespace titan::quantized
