#include "core/exchange/weight_names.h"

#include <algorithm>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/exchange/quantised.h"
#include "core/exchange/rule_layout.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr size_t kMaxLineLength = 1000;
constexpr size_t kMaxListed = 12;  // of each kind, since a wrong flavor has hundreds

/// Whether a tensor's name is ignored by `names`.
bool is_ignored(const WeightNames& names, const std::string& name) {
  const auto names_it = [&](const std::string& ignored) {
    if (ignored.ends_with('.')) return name.starts_with(ignored);
    return name == ignored || name.ends_with("." + ignored);
  };
  const auto begins = [&](const std::string& begin) { return name.starts_with(begin); };
  return std::any_of(names.ignored.begin(), names.ignored.end(), names_it) ||
         std::any_of(names.ignored_prefixes.begin(), names.ignored_prefixes.end(), begins);
}

void list(const std::string& title, const std::vector<std::string>& lines, std::string& text) {
  if (lines.empty()) return;
  text += "\n  " + title + ":";
  for (size_t i = 0; i < std::min(lines.size(), kMaxListed); ++i)
    text += "\n    " + printable(lines[i], kMaxLineLength);
  if (lines.size() > kMaxListed)
    text += "\n    and " + std::to_string(lines.size() - kMaxListed) + " more";
}

/// Looks up the tensors of the rules in the index and collects problems.
struct Findings {
  using Alternatives = std::vector<TensorParts>;

  Findings(const RuleLayout& rules, const TensorIndex& there) : layout(rules), index(there) {}

  bool is_stored(const TensorPart& part) const { return index.tensors.contains(part.source); }

  /// The first alternative that is stored completely, else the first that is stored partly.
  Alternatives::const_iterator first_stored(const Alternatives& all) const {
    const auto is_there = [&](const TensorPart& part) { return is_stored(part); };
    const auto whole = std::find_if(all.begin(), all.end(), [&](const TensorParts& parts) {
      return std::all_of(parts.begin(), parts.end(), is_there);
    });
    if (whole != all.end()) return whole;
    return std::find_if(all.begin(), all.end(), [&](const TensorParts& parts) {
      return std::any_of(parts.begin(), parts.end(), is_there);
    });
  }

  void add_missing(const std::string& ours, const TensorParts& parts) {
    for (const TensorPart& part : parts)
      if (!is_stored(part))
        missing.push_back(part.source + (part.source == ours ? "" : " (" + ours + ")"));
  }

  /// Marks and checks the stored tensors of `parts`. Returns whether all are stored and not used by
  /// another parameter.
  bool take(const ParameterInfo& parameter, const TensorParts& parts) {
    bool is_new = true;
    for (const TensorPart& part : parts) {
      const auto stored = index.tensors.find(part.source);
      if (stored == index.tensors.end()) {
        is_new = false;
        continue;
      }
      if (!part.scales.empty()) used.insert(part.scales);
      if (!used.insert(part.source).second) continue;
      const std::vector<int64_t>& expected = layout.shapes.at(part.source);
      const std::vector<int64_t> shape = value_shape(part, index);
      if (shape != expected)
        wrong.push_back(
            part.source + " is " + shape_text(shape) +
            (is_whole(part, parameter.shape, expected)
                 ? ", the model's is " + shape_text(expected)
                 : ", the rules of " + parameter.name + " make it " + shape_text(expected)));
      else if (const std::string problem = storage_problem(part, index); !problem.empty())
        unreadable.push_back(problem);
    }
    return is_new;
  }

  const RuleLayout& layout;
  const TensorIndex& index;
  std::set<std::string> used;
  std::vector<std::string> missing, wrong, unreadable;
};

}  // namespace

const HfExchange& exchange_of(const Model& model, const std::string& model_name) {
  const auto* exchange = dynamic_cast<const HfExchange*>(&model);
  TITAN_CHECK(exchange, plugin, "model '", model_name,
              "' cannot exchange weights with other programs: its plugin has no names for them");
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
  // torchtitan also saves these
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

std::string omitted_states_text(const Model& model, const ModelPart& part,
                                const std::string& model_name) {
  std::set<std::string> named;
  for (const HfExchange::NameRule& rule : names_of(model, model_name, Naming::hugging_face).rules)
    named.insert(rule.ours);
  std::vector<std::string> states;
  for (const ParameterInfo& parameter : part.all_parameters())
    if (parameter.is_state() && !named.contains(parameter.name)) states.push_back(parameter.name);
  if (states.empty()) return "";
  const size_t others = states.size() - 1;
  return "Hugging Face's format of model '" + model_name + "' has no place for " + states[0] +
         (others == 0 ? ""
                      : " and " + std::to_string(others) + (others == 1 ? " state" : " states") +
                            " like it") +
         ": an export leaves " + (others == 0 ? "it" : "them") +
         " out, and programs that read it compute other results than this model; titan describe "
         "model " +
         model_name + " lists the option that adds " + (others == 0 ? "it" : "them");
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
  const RuleLayout layout = lay_out_rules(part.all_parameters(), names.rules, model_name);
  std::vector<FoundWeight> found;
  Findings findings(layout, index);
  for (const ParameterInfo& parameter : part.all_parameters()) {
    const auto alternatives = layout.alternatives.find(parameter.name);
    const bool is_optional = names.optional.contains(parameter.name);
    TITAN_CHECK(alternatives != layout.alternatives.end() || is_optional, plugin,
                "the plugin of model '", model_name, "' gives no name for its parameter ",
                parameter.name);
    if (alternatives == layout.alternatives.end()) continue;
    const auto there = findings.first_stored(alternatives->second);
    if (there == alternatives->second.end()) {
      if (!is_optional) findings.add_missing(parameter.name, alternatives->second.front());
      continue;
    }
    found.push_back({parameter.name, parameter.shape, *there});
    if (parameter.own_dtype) found.back().own_dtype = stored_dtype(*parameter.own_dtype);
    findings.add_missing(parameter.name, *there);
    for (auto other = there; other != alternatives->second.end(); ++other)
      if (findings.take(parameter, *other) && other != there) found.back().copies.push_back(*other);
  }
  std::vector<std::string> unexpected;
  for (const auto& [name, tensor] : index.tensors)
    if (!findings.used.contains(name) && !is_ignored(names, name)) unexpected.push_back(name);

  if (findings.missing.empty() && findings.wrong.empty() && findings.unreadable.empty() &&
      unexpected.empty())
    return found;
  std::string text = "the weights in " + place + " are not those of " + model_name;
  list("missing", findings.missing, text);
  list("of another shape", findings.wrong, text);
  list("of a type that cannot be read", findings.unreadable, text);
  list("not a weight of this model", unexpected, text);
  text += "\n  choose the model with model.name, model.flavor and its options";
  fail(ErrorKind::data, text);
}

}  // namespace titan::core
