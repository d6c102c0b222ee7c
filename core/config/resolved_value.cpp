#include "core/config/resolved_value.h"

#include <string>

#include "core/config/rules/feeds.h"

namespace titan::core {
namespace {

/// Removes unset options that are unset by default. Those that the default or the flavor sets
/// remain.
void drop_unset(Value& section, const KeyPath& path, const OptionTable& table,
                const Value& flavor) {
  Value::Map kept;
  for (auto& [name, value] : section.as_map()) {
    KeyPath inner = path;
    inner.push_back(name);
    if (value.is_map()) drop_unset(value, inner, table, flavor);
    const KnownOption* known = value.is_null() ? table.find(inner) : nullptr;
    const bool is_preset = path == KeyPath{"model"} && flavor.find(name);
    const bool is_unset_anyway = !known || (known->option->default_value.is_null() && !is_preset);
    if (!value.is_null() || !is_unset_anyway) kept.emplace_back(name, std::move(value));
  }
  section = Value(std::move(kept));
}

void add_options(Value& section, const Selection& selection) {
  for (const auto& [name, value] : selection.options.as_map()) section[name] = value;
}

bool has_named_section(const Selection& selection) {
  return selection.section.starts_with(selection.kind + ".");
}

/// Sections such as [dataset.<name>], for components whose section is not one of the core.
Value named_sections(const std::vector<Selection>& selections, std::string_view kind) {
  Value sections = Value::map();
  for (const Selection& selection : selections)
    if (selection.kind == kind && has_named_section(selection))
      if (!selection.options.as_map().empty()) sections[selection.name] = selection.options;
  return sections;
}

/// Adds sections with other names, such as [quantize.linear.float8].
void add_own_sections(Value& resolved, const std::vector<Selection>& selections,
                      std::string_view kind) {
  for (const Selection& selection : selections) {
    if (selection.kind != kind || has_named_section(selection)) continue;
    Value* place = &resolved;
    for (const std::string& part : split_dotted(selection.section)) place = &(*place)[part];
    *place = selection.options;
  }
}

/// Adds the sections of plugins of a kind, without options that follow from the core's keys.
void add_sections(Value& section, const std::vector<Selection>& selections, const std::string& kind,
                  const JobConfig& config, const OptionTable& table) {
  for (const auto& [plugin, options] : named_sections(selections, kind).as_map()) {
    const Component* component = table.component_of({kind, plugin});
    const Value fed = component ? fed_options(component->schema, config) : Value::map();
    Value own = Value::map();
    for (const auto& [name, value] : options.as_map()) {
      const Value* core = fed.find(name);
      if (!core || !(*core == value)) own[name] = value;
    }
    if (!own.as_map().empty()) section[plugin] = own;
  }
}

/// [optimizer.groups.<name>]
void add_groups(Value& core, const JobConfig& config) {
  if (config.optimizer_groups.empty()) return;
  Value groups = Value::map();
  for (const OptimizerGroup& group : config.optimizer_groups) {
    Value section =
        Value::map({{"patterns", Value::List(group.patterns.begin(), group.patterns.end())}});
    add_options(section, group.optimizer);
    groups[group.name] = std::move(section);
  }
  core["optimizer"]["groups"] = std::move(groups);
}

bool is_blend(const OptionTable& table) {
  return !table.source_names().empty();
}

/// Adds [data.sources.<name>] and removes the data set from [training].
void add_sources(Value& core, const JobConfig& config) {
  Value sources = Value::map();
  for (const DataSource& source : config.sources) {
    Value section = Value::map({{"dataset", source.dataset.name}});
    if (!source.path.empty()) section["dataset_path"] = source.path;
    section["weight"] = source.weight;
    add_options(section, source.dataset);
    sources[source.name] = std::move(section);
  }
  core["data"]["sources"] = std::move(sources);
  std::erase_if(core["training"].as_map(), [](const Value::Member& member) {
    return member.first == "dataset" || member.first == "dataset_path";
  });
}

/// The data sets whose options are in [dataset.<name>].
std::vector<Selection> data_sets(const JobConfig& config, const OptionTable& table) {
  std::vector<Selection> selections;
  if (!is_blend(table))
    for (const DataSource& source : config.sources) selections.push_back(source.dataset);
  if (config.validation_source) selections.push_back(config.validation_source->dataset);
  return selections;
}

}  // namespace

Value resolved_value(const JobConfig& config, const OptionTable& table, const Value& flavor) {
  Value core = job_schema().read(&config);
  core["job"]["config_file"] = Value();  // names the input, not the job
  for (const Selection* selection :
       {&config.model_plugin, &config.tokenizer, &config.optimizer, &config.lr_scheduler,
        &config.loss, &config.chat_template, &config.device})
    if (!selection->name.empty()) add_options(core[selection->kind], *selection);

  for (const Selection& selection : config.transforms)
    if (selection.kind == "activation_checkpoint") add_options(core[selection.kind], selection);
  Value watchers = Value::map();
  add_sections(watchers, config.watchers, "watcher", config, table);
  add_sections(core["parallelism"], config.transforms, "parallelism", config, table);
  if (is_blend(table)) add_sources(core, config);
  add_groups(core, config);

  Value resolved = Value::map();
  for (auto& [name, section] : core.as_map()) {
    resolved[name] = std::move(section);
    if (name == "job" && !watchers.as_map().empty()) resolved["watcher"] = watchers;
    if (name == "metrics") resolved["logger"] = named_sections(config.loggers, "logger");
    if (name == "model") {
      resolved["converter"] = named_sections(config.transforms, "converter");
      add_own_sections(resolved, config.transforms, "converter");
    }
    if (name == "parallelism" && config.pipeline_plan)
      add_sections(resolved["pipeline_schedule"] = Value::map(), {config.pipeline_schedule},
                   "pipeline_schedule", config, table);
    if (name == "training")
      resolved["dataset"] = named_sections(data_sets(config, table), "dataset");
  }
  drop_unset(resolved, {}, table, flavor);
  return resolved;
}

}  // namespace titan::core
