#include "core/exchange/model_options.h"

#include <algorithm>
#include <memory>

#include <titan/error.h>
#include <titan/hf_exchange.h>

namespace titan::core {
namespace {

/// The path of an option: {"rope_scaling", "scaling_factor"}.
using OptionPath = std::vector<std::string>;

/// An option whose value differs. Null: not set.
struct ChangedOption {
  OptionPath path;
  Value there, here;
};

bool is_same_value(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.as_number() == b.as_number();
  if (!a.is_list() || !b.is_list()) return a == b;
  const auto sorted = [](const Value& list) {  // the order of a list of names has no meaning
    std::vector<std::string> items;
    for (const Value& item : list.as_list()) items.push_back(to_json(item));
    std::sort(items.begin(), items.end());
    return items;
  };
  return sorted(a) == sorted(b);
}

/// Lists the options whose values differ between `here` and `there`. An option missing in `there`
/// was not set or, if options of this kind are always set, unknown to the program that wrote it.
void list_changed(const Value& there, const Value& here, const Schema& schema,
                  const OptionPath& path, std::vector<ChangedOption>& changed) {
  for (const Option& option : schema.options) {
    OptionPath inner = path;
    inner.push_back(option.name);
    const Value* found = there.find(option.name);
    const Value* own = here.find(option.name);
    if (option.table) {
      if (found && own) list_changed(*found, *own, *option.table, inner, changed);
      continue;
    }
    if (!found && !option.default_value.is_null()) continue;
    const Value was = found ? *found : Value(), is = own ? *own : Value();
    if (!is_same_value(was, is)) changed.push_back({inner, was, is});
  }
}

void set_option(Value& options, const OptionPath& path, const Value& value) {
  Value* place = &options;
  for (const std::string& name : path) place = &(*place)[name];
  *place = value;
}

std::string shown_difference(const std::string& section, const ChangedOption& option) {
  std::string name = section;
  for (const std::string& part : option.path) name += "." + part;
  const auto shown = [](const Value& value) {
    return value.is_null() ? std::string("not set") : to_json(value);
  };
  return name + " is " + shown(option.there) + " there and " + shown(option.here) + " here";
}

/// Whether two models give the same results from the same weights, by their HfExchange.
bool computes_the_same(const Model& a, const Model& b) {
  const auto* first = dynamic_cast<const HfExchange*>(&a);
  const auto* second = dynamic_cast<const HfExchange*>(&b);
  return first && second && a.isolates_documents() == b.isolates_documents() &&
         first->config_differences(second->hf_config()).empty();
}

/// Lists differences of [model] without converters.
void list_model(const Value& saved, const JobConfig& config, const Model& model, Registry& registry,
                std::vector<std::string>& differences) {
  const Selection& chosen = config.model_plugin;
  const Value* table = saved.find("model");
  const Value* name = table ? table->find("name") : nullptr;
  if (!name || !name->is_string()) {
    differences.push_back("its manifest does not say which model it was saved with");
    return;
  }
  std::vector<ChangedOption> changed;
  list_changed(*table, chosen.options, registry.component("model", chosen.name).schema, {},
               changed);
  const bool is_renamed = *name != Value(config.model.name) && *name != Value(chosen.name);
  if (changed.empty() && !is_renamed) return;

  Value whole = chosen.options;
  for (const ChangedOption& option : changed) set_option(whole, option.path, option.there);
  const auto theirs = try_model(registry, is_renamed ? name->as_string() : chosen.name, whole,
                                config.training.seq_len);
  if (theirs && computes_the_same(*theirs, model)) return;

  if (is_renamed)
    differences.push_back("model.name is " + name->as_string() + " there and " + chosen.name +
                          " here");
  std::vector<std::string> relevant, all;
  for (const ChangedOption& option : changed) {
    all.push_back(shown_difference("model", option));
    Value one = chosen.options;
    set_option(one, option.path, option.there);
    const auto with_it = try_model(registry, chosen.name, one, config.training.seq_len);
    if (!with_it || !computes_the_same(*with_it, model)) relevant.push_back(all.back());
  }
  const auto& listed = relevant.empty() ? all : relevant;
  differences.insert(differences.end(), listed.begin(), listed.end());
}

/// Lists differences of converters that both have and that change exported weights.
void list_converters(const Value& saved, const JobConfig& config, Registry& registry,
                     std::vector<std::string>& differences) {
  const Value* sections = saved.find("converter");
  if (!sections) return;
  for (const Selection& chosen : config.transforms) {
    if (chosen.kind != "converter") continue;
    const Component& component = registry.component(chosen.kind, chosen.name);
    const auto& abilities = component.abilities;
    const bool exports =
        std::find(abilities.begin(), abilities.end(), "ExportTransform") != abilities.end();
    const Value* there = exports ? sections->find(chosen.name) : nullptr;
    if (!there || !there->is_map()) continue;
    std::vector<ChangedOption> changed;
    list_changed(*there, chosen.options, component.schema, {}, changed);
    for (const ChangedOption& option : changed)
      differences.push_back(shown_difference("converter." + chosen.name, option));
  }
}

}  // namespace

std::unique_ptr<Model> try_model(Registry& registry, const std::string& name, const Value& options,
                                 int64_t seq_len) {
  try {
    return registry.create<Model>(name, options, {.seq_len = seq_len});
  } catch (const Error&) {
    return nullptr;
  }
}

std::vector<std::string> model_differences(const Value& saved, const JobConfig& config,
                                           const Model& model, Registry& registry) {
  std::vector<std::string> differences;
  list_model(saved, config, model, registry, differences);
  list_converters(saved, config, registry, differences);
  return differences;
}

std::vector<std::string> loss_differences(const Value& saved, const JobConfig& config,
                                          Registry& registry) {
  const Value* there = saved.find("loss");
  const Value* name = there && there->is_map() ? there->find("name") : nullptr;
  const Value was = name ? *name : Value();
  const Value is = config.loss.name.empty() ? Value() : Value(config.loss.name);
  std::vector<std::string> differences;
  std::vector<ChangedOption> changed;
  if (!(was == is))
    changed.push_back({{"name"}, was, is});
  else if (!is.is_null())
    list_changed(*there, config.loss.options,
                 registry.component(config.loss.kind, config.loss.name).schema, {}, changed);
  for (const ChangedOption& option : changed)
    differences.push_back(shown_difference("loss", option));
  return differences;
}

std::string check_model_options(const Value& saved, const JobConfig& config, const Model& model,
                                Registry& registry, const std::string& place) {
  std::string text;
  for (const std::string& line : model_differences(saved, config, model, registry))
    text += "\n  " + line;
  if (text.empty()) return "";
  text = place + " was saved with another model than this configuration's:" + text;
  const auto& trusted = config.checkpoint.take_on_trust;
  if (std::find(trusted.begin(), trusted.end(), "model_options") != trusted.end())
    return text + "\n  this is accepted because of checkpoint.take_on_trust";
  fail(ErrorKind::config, text,
       "\n  set these options to the checkpoint's values, or accept the differences with "
       "checkpoint.take_on_trust = [\"model_options\"]");
}

}  // namespace titan::core
