#include "core/exchange/weight_names.h"

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr size_t kMaxListed = 12;  // of each kind; a wrong flavor would list hundreds

/// "is there" in the sense of WeightNames.
bool is_ignored(const WeightNames& names, const std::string& name) {
  const auto ends = [&](const std::string& end) {
    return name == end || name.ends_with("." + end);
  };
  const auto begins = [&](const std::string& begin) { return name.starts_with(begin); };
  return std::any_of(names.ignored.begin(), names.ignored.end(), ends) ||
         std::any_of(names.ignored_prefixes.begin(), names.ignored_prefixes.end(), begins);
}

void list(const std::string& title, const std::vector<std::string>& lines, std::string& text) {
  if (lines.empty()) return;
  text += "\n  " + title + ":";
  for (size_t i = 0; i < std::min(lines.size(), kMaxListed); ++i)
    text += "\n    " + printable(lines[i]);
  if (lines.size() > kMaxListed)
    text += "\n    and " + std::to_string(lines.size() - kMaxListed) + " more";
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + ")";
}

const HfExchange& exchange_of(const Model& model, const std::string& model_name) {
  const auto* exchange = dynamic_cast<const HfExchange*>(&model);
  TITAN_CHECK(exchange, plugin, "model '", model_name,
              "' cannot exchange weights with others: its plugin does not say how they name them");
  return *exchange;
}

WeightNames names_of(const Model& model, const std::string& model_name, Naming naming) {
  const HfExchange& exchange = exchange_of(model, model_name);
  WeightNames names{.rules = exchange.name_rules(naming),
                    .ignored = exchange.ignored_names(naming)};
  const char* whose = naming == Naming::hugging_face ? "Hugging Face"
                      : naming == Naming::meta       ? "Meta"
                                                     : "torchtitan";
  TITAN_CHECK(!names.rules.empty(), plugin, "model '", model_name, "' does not know how ", whose,
              " names its weights");
  // what torchtitan saves beside the weights
  if (naming == Naming::torchtitan)
    names.ignored_prefixes = {"state.",        "param_groups.", "optimizer.",
                              "lr_scheduler.", "train_state.",  "dataloader."};
  return names;
}

WeightNames own_names(const ModelPart& part) {
  WeightNames names;
  for (const ParameterInfo& parameter : part.all_parameters())
    names.rules.push_back({parameter.name, parameter.name});
  names.ignored_prefixes = {std::string(kOptimizerPrefix)};
  return names;
}

std::set<std::string> missing_states(const ModelPart& part, const WeightNames& names,
                                     const TensorIndex& index) {
  std::set<std::string> missing;
  for (const ParameterInfo& parameter : part.all_parameters())
    if (parameter.is_state()) missing.insert(parameter.name);
  for (const HfExchange::NameRule& rule : names.rules)
    if (index.tensors.contains(rule.theirs)) missing.erase(rule.ours);
  return missing;
}

std::vector<FoundWeight> find_weights(const ModelPart& part, const WeightNames& names,
                                      const TensorIndex& index, const std::string& place,
                                      const std::string& model_name) {
  std::map<std::string, std::vector<const HfExchange::NameRule*>> rules;
  for (const HfExchange::NameRule& rule : names.rules) rules[rule.ours].push_back(&rule);

  std::vector<FoundWeight> found;
  std::set<std::string> used;
  std::vector<std::string> missing, wrong, unexpected;
  for (const ParameterInfo& parameter : part.all_parameters()) {
    const auto& alternatives = rules[parameter.name];
    const bool is_optional = names.optional.contains(parameter.name);
    TITAN_CHECK(!alternatives.empty() || is_optional, plugin, "the plugin of model '", model_name,
                "' gives no name for its parameter ", parameter.name);
    const auto there =
        std::find_if(alternatives.begin(), alternatives.end(),
                     [&](const auto* rule) { return index.tensors.contains(rule->theirs); });
    if (there == alternatives.end()) {
      if (is_optional) continue;
      const std::string& theirs = alternatives.front()->theirs;
      missing.push_back(theirs + (theirs == parameter.name ? "" : " (" + parameter.name + ")"));
      continue;
    }
    const HfExchange::NameRule& rule = **there;
    found.push_back({rule.ours, rule.theirs, parameter.shape, rule.num_rotary_heads});
    if (parameter.own_dtype) found.back().own_dtype = stored_dtype(*parameter.own_dtype);
    for (auto other = there; other != alternatives.end(); ++other) {
      const std::string& name = (*other)->theirs;
      const auto stored = index.tensors.find(name);
      if (stored == index.tensors.end()) continue;
      if (stored->second.shape != parameter.shape)
        wrong.push_back(name + " is " + shape_text(stored->second.shape) + ", the model's is " +
                        shape_text(parameter.shape));
      if (used.insert(name).second && other != there) found.back().copies.push_back(name);
    }
  }
  for (const auto& [name, tensor] : index.tensors)
    if (!used.contains(name) && !is_ignored(names, name)) unexpected.push_back(name);

  if (missing.empty() && wrong.empty() && unexpected.empty()) return found;
  std::string text = "the weights in " + place + " are not those of " + model_name;
  list("missing", missing, text);
  list("of another shape", wrong, text);
  list("not a weight of this model", unexpected, text);
  text += "\n  choose the model with model.name, model.flavor and its options";
  fail(ErrorKind::data, text);
}

}  // namespace titan::core
