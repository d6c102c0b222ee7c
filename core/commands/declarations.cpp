#include "core/commands/declarations.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/command.h>
#include <titan/error.h>

#include "core/commands/command.h"
#include "core/commands/command_flags.h"
#include "core/config/legacy/legacy_names.h"
#include "core/config/legacy/plugin_keys.h"
#include "core/config/schema/job_config.h"
#include "core/plugin/kinds.h"
#include "core/plugin/listing.h"
#include "core/plugin/schema_json.h"
#include "core/runtime/build_info.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

/// Keys whose values are names of components. A value may also be the key's default, such as
/// "auto", or a word of the core.
struct KeyOfKind {
  const char *key, *kind, *word = "";
};
constexpr KeyOfKind kKeysOfKinds[] = {
    {"model.name", "model"},
    {"model.flavor", "flavor"},
    {"model.converters", "converter"},
    {"tokenizer.name", "tokenizer"},
    {"optimizer.name", "optimizer"},
    {"lr_scheduler.name", "lr_scheduler"},
    {"loss.name", "loss"},
    {"chat_template.name", "chat_template"},
    {"device.name", "device"},
    {"training.dataset", "dataset"},
    {"validation.dataset", "dataset"},
    {"data.sources.*.dataset", "dataset"},
    {"metrics.loggers", "logger"},
    {"job.watchers", "watcher"},
    {"activation_checkpoint.mode", "activation_checkpoint", "none"},
    {"compile.backend", "compile_backend"},
    {"parallelism.pipeline_parallel_schedule", "pipeline_schedule"},
    {"parallelism.further", "parallelism"},
};

Value::List flags_json(const po::options_description& flags, const Component* component) {
  std::map<std::string, const Option*> options;
  if (component)
    for (const Option& option : component->schema.options) options[flag_of(option)] = &option;
  Value::List all;
  for (const auto& flag : flags.options()) {
    const std::string& name = flag->long_name();
    Value json = Value::map({{"flag", "--" + name}});
    const std::string short_name =
        flag->canonical_display_name(po::command_line_style::allow_dash_for_short);
    if (short_name.size() == 2 && short_name.front() == '-') json["short"] = short_name;
    if (flag->semantic()->max_tokens() > 0) json["value"] = flag->semantic()->name();
    json["help"] = flag->description();
    if (const auto found = options.find(name); found != options.end()) {
      const Option& option = *found->second;
      const Option& item = option.element ? *option.element : option;
      if (!item.choices.empty())
        json["choices"] = Value::List(item.choices.begin(), item.choices.end());
      if (item.type == OptionType::path) json["is_path"] = true;
      if (option.element) json["repeats"] = true;
    }
    all.push_back(std::move(json));
  }
  return all;
}

Value own_command(const CommandRow& row) {
  po::options_description flags = row.flags();
  flags.add_options()("help,h", "show this");
  return Value::map({{"name", row.name},
                     {"usage", row.usage},
                     {"summary", row.summary},
                     {"takes_job", row.takes_job},
                     {"flags", flags_json(flags, nullptr)}});
}

Value plugin_command(const Component& command, const Origin& origin) {
  return Value::map({{"name", command.name},
                     {"usage", command_usage(command)},
                     {"summary", command.help},
                     {"takes_job", command.words.takes_job},
                     {"takes_command", command.words.takes_command},
                     {"words", command.words.usage},
                     {"is_hidden", is_hidden(command.name)},
                     {"plugin", origin.plugin},
                     {"flags", flags_json(described_flags(command), &command)}});
}

/// The sections that hold the options of a component.
Value::List sections_of(const std::string& kind, const std::string& name) {
  const PluginKind* known = find_kind(kind);
  if (!known || known->section == PluginKind::Section::none) return {};
  Value::List sections;
  for (const PluginKey& row : kPluginKeys)
    if (!*row.key && kind == row.kind && name == row.plugin) sections.push_back(row.section);
  if (sections.empty())
    sections.push_back(known->section == PluginKind::Section::kind ? kind : kind + "." + name);
  if (kind == "dataset") sections.push_back(dotted(source_section("*")));
  if (kind == "optimizer") sections.push_back(dotted(optimizer_group_section("*")));
  return sections;
}

Value component_of(const Component& component, const Origin& origin) {
  Value json = Value::map({{"kind", component.kind},
                           {"name", component.name},
                           {"description", component.help},
                           {"plugin", origin.plugin},
                           {"sections", sections_of(component.kind, component.name)}});
  json["properties"] = json_schema(component.schema).at("properties");
  return json;
}

/// A section whose name is a table's: the schema of the table with its text.
Value section_json(const Option& section) {
  Value json = json_schema(*section.table);
  json["description"] = section.help;
  return json;
}

Value core_sections() {
  Value sections = Value::map();
  for (const Option& section : job_schema().options) sections[section.name] = section_json(section);
  sections[dotted(source_section("*"))] = json_schema(source_schema());
  sections[dotted(optimizer_group_section("*"))] = json_schema(optimizer_group_schema());
  return sections;
}

Value::List old_keys() {
  Value::List keys;
  for (const OldName& old : old_names())
    keys.push_back(Value::map({{"key", old.old_key},
                               {"current", old.new_key},
                               {"type", to_string(old.flag)},
                               {"is_refused", old.how == Translation::refused}}));
  return keys;
}

Value file_json(const CatalogEntry& entry) {
  Value json = Value::map({{"file", entry.file.string()},
                           {"plugin", entry.manifest.plugin},
                           {"version", entry.manifest.version}});
  if (const std::string why = why_unusable(entry); !why.empty()) json["problem"] = why;
  if (!entry.build_command.empty()) json["build"] = entry.build_command;
  return json;
}

/// Calls `use` for each component of a kind. Those that cannot be opened go into `unusable`.
template <class Use>
void each_usable(const Catalog& catalog, const std::string& kind, Value::List& unusable, Use use) {
  for (const std::string& name : catalog.names(kind)) {
    const auto providers = catalog.providers(kind, name);
    if (!providers.front()->build_command.empty()) continue;
    try {
      use(name);
    } catch (const Error& e) {
      unusable.push_back(Value::map({{"kind", kind},
                                     {"name", name},
                                     {"file", providers.front()->file.string()},
                                     {"problem", e.what()}}));
    }
  }
}

}  // namespace

Value declarations(const std::vector<CommandRow>& own_commands, const Catalog& catalog,
                   Registry& registry) {
  Value::List commands, components, flavors, kinds, names, files, unusable;
  for (const CommandRow& row : own_commands)
    if (row.flags) commands.push_back(own_command(row));
  const std::vector<std::string> models = catalog.names("model");
  for (const PluginKind& kind : kind_table()) {
    const std::string name(kind.name);
    kinds.emplace_back(name);
    each_usable(catalog, name, unusable, [&](const std::string& provided) {
      if (name == "flavor") {
        const FlavorName split = split_flavor(provided, models);
        const Flavor& flavor = registry.flavor(split.model, split.flavor);
        flavors.push_back(Value::map(
            {{"model", split.model}, {"name", split.flavor}, {"description", flavor.help}}));
        return;
      }
      const Component& component = registry.component(name, provided);
      const Origin& origin = registry.origin(component);
      if (name == titan::Command::kKind)
        commands.push_back(plugin_command(component, origin));
      else
        components.push_back(component_of(component, origin));
    });
  }
  for (const auto& [key, kind, word] : kKeysOfKinds)
    names.push_back(Value::map({{"key", key}, {"kind", kind}, {"word", word}}));
  for (const CatalogEntry& entry : catalog.entries()) files.push_back(file_json(entry));
  return Value::map({{"program", build_summary()},
                     {"commands", std::move(commands)},
                     {"sections", core_sections()},
                     {"components", std::move(components)},
                     {"flavors", std::move(flavors)},
                     {"kinds", std::move(kinds)},
                     {"keys_of_kinds", std::move(names)},
                     {"old_keys", old_keys()},
                     {"files", std::move(files)},
                     {"unusable", std::move(unusable)}});
}

}  // namespace titan::core
