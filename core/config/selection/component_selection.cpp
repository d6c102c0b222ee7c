#include "core/config/selection/component_selection.h"

#include <algorithm>
#include <set>
#include <utility>

#include <titan/program/text.h>
#include <titan/suggest.h>

#include "core/config/legacy/legacy_names.h"
#include "core/config/legacy/plugin_keys.h"
#include "core/config/selection/automatic_names.h"
#include "core/config/selection/default_plugins.h"
#include "core/config/selection/not_built.h"
#include "core/config/sources/collect.h"
#include "core/plugin/kinds.h"

namespace titan::core {
namespace {

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", " : "") + names[i];
  return text + (names.size() > kMost ? ", ..." : "");
}

std::string there_are(const std::vector<std::string>& names) {
  return names.empty() ? "there is none" : "there are: " + listed(names);
}

class Chooser {
 public:
  Chooser(const GivenValues& given, ComponentLookup& lookup, OptionTable& table,
          Diagnostics& diagnostics)
      : given_(given), lookup_(lookup), table_(table), diagnostics_(diagnostics) {}

  std::vector<ChosenComponent> choose(const std::vector<ParallelismRequest>& parallelisms) {
    choose_one("model", "model.name", {"model"});
    if (given_.is_sound("tokenizer.name"))
      add("tokenizer", choose_tokenizer(given_), "tokenizer.name", {"tokenizer"});
    else
      table_.leave_unchecked({"tokenizer"}, all_of(lookup_, "tokenizer"));
    for (const char* kind : {"optimizer", "lr_scheduler"})
      choose_one(kind, std::string(kind) + ".name", {kind});
    for (const std::string& group : table_.optimizer_group_names())
      choose_one("optimizer", "optimizer.name", optimizer_group_section(group));
    if (given_.is_sound("device.name"))
      add("device", choose_device(given_, lookup_), "device.name", {"device"});
    else
      table_.leave_unchecked({"device"}, all_of(lookup_, "device"));
    choose_optional("loss");
    choose_optional("chat_template");
    choose_data();
    choose_loggers();
    choose_watchers();
    choose_converters();
    choose_recomputation();
    choose_compile_backend();
    choose_schedule();
    for (const ParallelismRequest& request : parallelisms)
      add("parallelism", request.name, request.key, {}, Use::only_one, request.where);
    return std::move(chosen_);
  }

 private:
  /// The valid value of a key: as given, or its default.
  Value value(const std::string& key) const {
    const Given* given = given_.find(key);
    if (given && given->is_valid) return given->value;
    return table_.find(split_dotted(key))->option->default_value;
  }

  using Use = ChosenComponent::Use;

  struct Item {
    std::string name;
    SourceRange where;
  };

  /// The names in a list, each with its place. Leaves out wrong items, which are reported already.
  std::vector<Item> items(const std::string& key) const {
    const Given* given = given_.find(key);
    const Value all = given && given->value.is_list() ? given->value : value(key);
    std::vector<Item> found;
    for (size_t i = 0; i < all.as_list().size(); ++i)
      if (const Value& item = all.as_list()[i]; item.is_string())
        found.push_back({item.as_string(), given_.item_place(key, i)});
    return found;
  }

  /// The components that may be meant by a `name` that no plugin provides. None for a third party's
  /// name (with '/') or a component that is not built yet, unless it resembles a known name.
  std::vector<const Component*> meant_by(const std::string& kind, const std::string& name) const {
    const bool is_strange = name.find('/') != std::string::npos || is_built_later(kind, name);
    return is_strange && did_you_mean(name, lookup_.names(kind)).empty()
               ? std::vector<const Component*>{}
               : all_of(lookup_, kind);
  }

  void choose_one(const std::string& kind, const std::string& key, KeyPath section,
                  Use use = Use::only_one) {
    if (!given_.is_sound(key)) {  // reported; its options cannot be checked
      table_.leave_unchecked(section.empty() ? KeyPath{kind} : section, all_of(lookup_, kind));
      return;
    }
    add(kind, value(key).as_string(), key, std::move(section), use);
  }

  /// Chooses a component of an optional kind.
  void choose_optional(const std::string& kind) {
    const std::string key = kind + ".name";
    if (given_.is_sound(key) && value(key).is_null()) return;
    choose_one(kind, key, {kind});
  }

  void choose_data() {
    for (const std::string& name : table_.source_names()) choose_source(name);
    if (table_.source_names().empty())
      choose_one("dataset", "training.dataset", {}, Use::training_data);
    if (given_.is_sound("validation.enable") && value("validation.enable").as_boolean())
      choose_one("dataset", "validation.dataset", {}, Use::validation_data);
  }

  void choose_source(const std::string& name) {
    const KeyPath section = source_section(name);
    const std::string key = dotted(section) + ".dataset";
    if (given_.is_sound(key) && value(key).as_string().empty()) {
      diagnostics_.error(given_.place(key), "[" + dotted(section) + "] needs a dataset",
                         there_are(lookup_.names("dataset")));
      table_.leave_unchecked(section, all_of(lookup_, "dataset"));
      return;
    }
    choose_one("dataset", key, section, Use::training_data);
  }

  void choose_loggers() {
    std::set<std::string> names;
    const std::vector<Item> loggers = items("metrics.loggers");
    for (const auto& [name, where] : loggers) {
      if (names.insert(name).second)
        add("logger", name, "metrics.loggers", {}, Use::only_one, where);
      else
        diagnostics_.error(where, "logger '" + name + "' is named twice");
    }
    for (const auto& [key, name] :
         {std::pair("metrics.enable_tensorboard", default_plugins::kTensorBoard),
          std::pair("metrics.enable_wandb", default_plugins::kWandb)})
      if (value(key).as_boolean() && !names.contains(name)) add("logger", name, key, {});
  }

  /// The watchers that keys of the core select, then those that are named.
  void choose_watchers() {
    std::set<std::string> of_keys, names;
    for (const auto& [key, name] : default_plugins::kWatchers) {
      const Given* given = given_.find(key);
      if (!given || !given->is_valid || of_keys.contains(name)) continue;
      if (given->value == table_.find(split_dotted(key))->option->default_value) continue;
      of_keys.insert(name);
      add("watcher", name, key, {});
    }
    for (const auto& [name, where] : items("job.watchers")) {
      if (!names.insert(name).second)
        diagnostics_.error(where, "watcher '" + name + "' is named twice");
      else if (!of_keys.contains(name))
        add("watcher", name, "job.watchers", {}, Use::only_one, where);
    }
  }

  void choose_converters() {
    std::set<std::string> names;
    for (const auto& [item, where] : items("model.converters")) {
      const std::string name(current_converter_name(item));
      if (name != item)
        diagnostics_.warning(where, "converter '" + item + "' is an old name; use '" + name + "'");
      if (!names.insert(name).second) {
        diagnostics_.error(where, "converter '" + name + "' is named twice");
        continue;
      }
      add("converter", name, "model.converters", own_section("converter", name), Use::only_one,
          where);
    }
  }

  /// The section of a component in torchtitan's files; empty if there is none.
  static KeyPath own_section(std::string_view kind, std::string_view name) {
    for (const PluginKey& row : kPluginKeys)
      if (!*row.key && row.kind == kind && row.plugin == name) return split_dotted(row.section);
    return {};
  }

  void choose_recomputation() {
    const std::string key = "activation_checkpoint.mode";
    if (!given_.is_sound(key) || value(key) == Value("none")) return;
    add("activation_checkpoint", value(key).as_string(), key, {"activation_checkpoint"});
  }

  /// Looks the backend up only if compile.enable is set.
  void choose_compile_backend() {
    const std::string key = "compile.backend";
    if (!given_.is_sound("compile.enable") || !given_.is_sound(key)) return;
    if (!value("compile.enable").as_boolean()) return;
    const std::string name = value(key).as_string();
    if (name == "eager" || name == "aot_eager")
      return diagnostics_.error(
          given_.place(key),
          "compile.backend = \"" + name + "\" leaves the model unchanged, as without [compile]",
          "set compile.enable = false, or leave backend out");
    const bool is_default = name == CompileSection{}.backend;
    add("compile_backend", is_default ? default_plugins::kCompileBackend : name, key, {});
  }

  /// With one pipeline rank only checks that the schedule's name is known.
  void choose_schedule() {
    const std::string kind = "pipeline_schedule";
    const std::string csv_key = "parallelism.pipeline_parallel_schedule_csv";
    const std::string name_key = "parallelism.pipeline_parallel_schedule";
    const std::string degree_key = "parallelism.pipeline_parallel_degree";
    if (!given_.is_sound(csv_key) || !given_.is_sound(name_key) || !given_.is_sound(degree_key))
      return;
    const bool is_used = value(degree_key).as_integer() > 1;
    const Value csv = value(csv_key);
    if (csv.is_string() && !csv.as_string().empty()) {
      if (is_used) add(kind, default_plugins::kScheduleFile, csv_key, {});
      return;
    }
    const std::string name = choose_schedule_name(given_, lookup_);
    const std::vector<std::string> known = lookup_.names(kind);
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (is_used || (!is_known && given_.find(name_key))) add(kind, name, name_key, {});
  }

  void add(const std::string& kind, const std::string& name, const std::string& key,
           KeyPath section, Use use = Use::only_one, SourceRange where = {}) {
    if (section.empty()) section = {kind, name};
    if (!where) where = given_.place(key);
    std::string why;
    const Component* component = lookup_.find(kind, name, why);
    if (!component && why.empty() && kind == "dataset" && name != lower_case(name))
      component = lookup_.find(kind, lower_case(name), why);
    if (!component) {
      table_.leave_unchecked(section,
                             why.empty() ? meant_by(kind, name) : std::vector<const Component*>{});
      report_missing(kind, name, key, where, why);
      return;
    }
    if (section.size() == 2) section.back() = component->name;
    try {
      // training and validation may read the same kind of data set, with the same options
      if (table_.component_of(section) != component) table_.add(section, *component);
    } catch (const Error& e) {
      diagnostics_.add({.message = e.what(), .where = where, .from_plugin = true});
    }
    chosen_.push_back({component, std::move(section), where, use});
  }

  void report_missing(const std::string& kind, const std::string& name, const std::string& key,
                      const SourceRange& where, const std::string& why) {
    if (!why.empty()) {
      diagnostics_.add({.message = "cannot use " + kind + " '" + name + "'",
                        .where = where,
                        .details = why,
                        .from_plugin = true});
      return;
    }
    const std::vector<std::string> names = lookup_.names(kind);
    const bool is_named = given_.find(key) != nullptr;
    const std::string origin = is_named ? "" : ", the default of " + key;
    if (is_built_later(kind, kind == "dataset" ? lower_case(name) : name)) {
      diagnostics_.not_built(
          where, kind + " '" + name + "'" + origin + (is_named ? "" : ",") + " is not built yet",
          there_are(names));
      return;
    }
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = there_are(names);
    diagnostics_.add(
        {.message = (is_named ? "unknown " : "cannot find ") + kind + " '" + name + "'" + origin,
         .where = where,
         .hint = hint,
         .details = std::exchange(trail_shown_, true) ? "" : lookup_.search_trail(),
         .see = "titan list " + kind});
  }

  const GivenValues& given_;
  ComponentLookup& lookup_;
  OptionTable& table_;
  Diagnostics& diagnostics_;
  std::vector<ChosenComponent> chosen_;
  bool trail_shown_ = false;
};

}  // namespace

std::vector<ChosenComponent> choose_components(const GivenValues& given,
                                               const std::vector<ParallelismRequest>& parallelisms,
                                               ComponentLookup& lookup, OptionTable& table,
                                               Diagnostics& diagnostics) {
  table.set_lookup(lookup);
  return Chooser(given, lookup, table, diagnostics).choose(parallelisms);
}

void check_unchosen_sections(const SettingList& source, ComponentLookup& lookup, OptionTable& table,
                             Diagnostics& diagnostics) {
  for (const TableHeader& header : source.tables) {
    if (header.path.size() < 2 || table.is_section(header.path) || table.is_unchecked(header.path))
      continue;
    const std::string& kind = header.path[0];
    if (!has_named_sections(kind)) continue;
    const KeyPath section(header.path.begin(), header.path.begin() + 2);
    if (table.is_section(section)) continue;
    const std::string& name = section.back();
    const std::vector<std::string> names = lookup.names(kind);
    if (std::find(names.begin(), names.end(), name) != names.end() || is_built_later(kind, name))
      diagnostics.warning(header.where, "[" + dotted(section) +
                                            "] has no effect: this job does not use " + kind +
                                            " '" + name + "'");
    else
      diagnostics.error(header.where, "unknown " + kind + " '" + name + "'",
                        did_you_mean(name, names));
    std::string ignored;
    const Component* component = lookup.find(kind, name, ignored);
    table.leave_unchecked(section,
                          component ? std::vector{component} : std::vector<const Component*>{});
  }
}

void add_unchosen_keys(const SettingList& file, const std::vector<std::string>& arguments,
                       ComponentLookup& lookup, OptionTable& table) {
  for (const PluginKey& row : kPluginKeys) {
    const KeyPath section = split_dotted(row.section);
    KeyPath path = section;
    if (*row.key) path.emplace_back(row.key);
    const bool is_known =
        *row.key ? table.find(path) != nullptr : table.component_of(section) != nullptr;
    if (is_known || !mentions(file, arguments, path)) continue;
    std::string ignored;
    const Component* component = lookup.find(row.kind, row.plugin, ignored);
    const bool has_options = component && !component->schema.options.empty();
    if (has_options && *row.key)
      table.add_option(section, *component, row.key);
    else if (has_options)
      table.add(section, *component);
    else if (*row.key)
      table.leave_key_unchecked(path);
  }
}

const Flavor* choose_flavor(const Component& model, const std::string& name,
                            const SourceRange& where, ComponentLookup& lookup,
                            Diagnostics& diagnostics) {
  std::string why;
  const Flavor* flavor = lookup.flavor(model.name, name, why);
  if (!flavor && !why.empty()) {
    diagnostics.add({.message = "cannot use flavor '" + name + "' of " + describe(model),
                     .where = where,
                     .details = why,
                     .from_plugin = true});
  } else if (!flavor) {
    std::vector<std::string> names;
    const std::string prefix = model.name + "/";
    for (const std::string& full : lookup.names("flavor"))
      if (full.starts_with(prefix)) names.push_back(full.substr(prefix.size()));
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = there_are(names);
    diagnostics.error(where, "unknown flavor '" + name + "' of " + describe(model), hint,
                      describe_command(model));
  } else {
    for (const auto& [key, value] :
         flavor->preset.is_map() ? flavor->preset.as_map() : Value::Map{}) {
      const Option* option = model.schema.find(key);
      const auto wrong = option ? option->problem(value) : std::optional<std::string>("is unknown");
      if (!wrong) continue;
      diagnostics.add({.message = "flavor '" + name + "' does not fit " + describe(model) +
                                  ": its option '" + key + "' " + *wrong,
                       .where = where,
                       .from_plugin = true});
      flavor = nullptr;
      break;
    }
  }
  return flavor;
}

}  // namespace titan::core
