#include "linear_choice.h"

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/nn/head.h>
#include <titan/suggest.h>

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

bool holds(const std::string& path, const std::string& filter) {
  return path.find(filter) != std::string::npos;
}

/// Every run of whole words of the paths: "layers.0.attention.wq" has "attention", "attention.wq".
std::set<std::string> parts_of(const std::vector<Found>& found) {
  std::set<std::string> parts;
  for (const Found& product : found) {
    const std::string& path = product.path;
    for (size_t begin = 0; begin < path.size();) {
      size_t end = begin;
      do {
        end = std::min(path.find('.', end + 1), path.size());
        parts.insert(path.substr(begin, end - begin));
      } while (end < path.size());
      begin = std::min(path.find('.', begin), path.size()) + 1;
    }
  }
  return parts;
}

void check_filters(const std::vector<Found>& found, const ChoiceRules& rules) {
  for (const std::string& filter : rules.filters) {
    const auto is_held = [&](const Found& product) { return holds(product.path, filter); };
    if (!filter.empty() && std::any_of(found.begin(), found.end(), is_held)) continue;
    const std::set<std::string> parts = parts_of(found);
    const std::string near = did_you_mean(filter, {parts.begin(), parts.end()});
    fail(ErrorKind::config, rules.converter, ".filter_fqns: '", filter,
         filter.empty() ? "' would leave every layer alone" : "' matches no linear layer",
         near.empty() ? "; a filter is a part of a path such as '" + found.front().path + "'"
                      : "; " + near);
  }
}

/// A kernel that others go around can still be swapped if it is done before they come.
void check_takers(const nn::Linear& linear, const std::string& path, const ChoiceRules& rules) {
  const nn::KernelTakers& takers = linear.kernel_takers();
  TITAN_CHECK(takers.replaced_by.empty(), config, rules.converter, ": '", path, "' is computed by ",
              takers.replaced_by, " already; name the layer in ", rules.converter,
              ".filter_fqns, or take one of the two out of model.converters");
  TITAN_CHECK(takers.wrapped_by.empty(), config, rules.converter, ": '", path, "' has ",
              takers.wrapped_by.front(), " around it already; put ", rules.converter, " before ",
              takers.wrapped_by.front(), " in model.converters");
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
      check_takers(*linear, path, rules);
      chosen.linears.push_back(linear);
    }
  }
  const std::string others =
      count(num_filtered, "left alone by filter_fqns") +
      count(num_unfit, "whose dimensions are no multiples of " + std::to_string(rules.multiple)) +
      count(num_small, "too small to gain");
  TITAN_CHECK(!chosen.linears.empty(), config, rules.converter, " has nothing to convert: of ",
              num_filtered + num_unfit + num_small, " linear layers 0 are left", others,
              "; take it out of model.converters or change filter_fqns");
  chosen.summary = rules.converter + " (" + rules.recipe + ") converts " +
                   std::to_string(chosen.linears.size()) + " linear layers" + others;
  return chosen;
}

}  // namespace titan::quantized
