#include "core/plugin/description.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/program/text_table.h>
#include <titan/shown_text.h>

#include "core/plugin/abilities.h"
#include "core/plugin/schema_json.h"

namespace titan::core {
namespace {

/// A report of several lines, indented below the name of its subject.
std::string indented(std::string text, const std::string& indent) {
  text = printable_message(text);
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.insert(at + 1, indent);
  return indent + text;
}

const Flavor& flavor_named(const Catalog& catalog, Registry& registry, std::string_view name) {
  const FlavorName split = split_flavor(name, catalog.names("model"));
  return registry.flavor(split.model, split.flavor);
}

std::string help_of(const Catalog& catalog, Registry& registry, std::string_view kind,
                    const std::string& name) {
  if (kind == "flavor") return flavor_named(catalog, registry, name).help;
  return registry.component(kind, name).help;
}

/// The names of the flavors of `model`, of all plugins.
std::vector<std::string> flavors_of(const Catalog& catalog, std::string_view model) {
  std::vector<std::string> flavors;
  const std::vector<std::string> models = catalog.names("model");
  for (const std::string& name : catalog.names("flavor"))
    if (FlavorName split = split_flavor(name, models); split.model == model)
      flavors.push_back(std::move(split.flavor));
  return flavors;
}

std::string shown(const Value& value) {
  return value.is_null() ? "(unset)" : to_json(value);
}

std::string preset_text(const Value& preset) {
  std::string text;
  if (preset.is_map())
    for (const auto& [name, value] : preset.as_map())
      text += (text.empty() ? "" : ", ") + name + " = " + shown(value);
  return text;
}

void add_options(const Schema& schema, const std::string& path, std::vector<TextRow>& rows) {
  for (const Option& option : schema.options) {
    if (option.table) {
      rows.push_back({path + option.name, "", "table", option.help});
      add_options(*option.table, path + option.name + ".", rows);
    } else {
      rows.push_back({path + option.name, shown(option.default_value),
                      option.allowed() + (option.may_be_unset ? ", or unset" : ""),
                      option.help + (option.fed_by.empty() ? "" : "; follows " + option.fed_by)});
    }
  }
}

std::string options_text(const Schema& schema) {
  if (schema.options.empty()) return "\nno options\n";
  std::vector<TextRow> rows{{"option", "default", "allowed", ""}};
  add_options(schema, "", rows);
  return "\n" + text_table(rows);
}

std::string flavors_text(const Catalog& catalog, Registry& registry, const std::string& model) {
  std::string text;
  for (const std::string& name : flavors_of(catalog, model)) {
    try {
      const Flavor& flavor = registry.flavor(model, name);
      text += "  " + name + "  " + flavor.help + "\n      " + preset_text(flavor.preset) + "\n";
    } catch (const Error& e) {
      text += "  " + name + "  unusable:\n" + indented(e.what(), "      ") + "\n";
    }
  }
  return text.empty() ? "\nno flavors\n" : "\nflavors\n" + text;
}

std::string describe_flavor(const Catalog& catalog, Registry& registry,
                            std::string_view full_name) {
  const Flavor& flavor = flavor_named(catalog, registry, full_name);
  const CatalogEntry& entry = *catalog.providers("flavor", full_name).front();
  std::vector<TextRow> rows;
  for (const auto& [name, value] : flavor.preset.as_map()) rows.push_back({name, shown(value)});
  return "flavor " + flavor.name + " of model " + flavor.model + ": " + flavor.help +
         "\n  plugin " + entry.manifest.plugin + " " + entry.manifest.version + ", " +
         (entry.file.empty() ? "built in" : entry.file.string()) + "\n\npreset\n" +
         text_table(rows, "  ");
}

}  // namespace

std::string describe_kind(const Catalog& catalog, Registry& registry, std::string_view kind) {
  std::vector<TextRow> rows;
  std::string unusable;
  for (const std::string& name : catalog.names(kind)) {
    try {
      rows.push_back({name, help_of(catalog, registry, kind, name)});
    } catch (const Error& e) {
      unusable += "  " + name + "\n" + indented(e.what(), "    ") + "\n";
    }
  }
  if (rows.empty() && unusable.empty())
    return "no " + std::string(kind) + " was found\n  " + catalog.search_trail() + "\n";
  return text_table(rows) + (unusable.empty() ? "" : "\nunusable here:\n" + unusable);
}

std::string describe_section(const std::string& section, const std::string& help,
                             const Schema& schema) {
  std::vector<TextRow> rows{{"key", "default", "allowed", ""}};
  add_options(schema, "", rows);
  return "[" + section + "] " + help + "\n\n" + text_table(rows);
}

std::string describe_component(const Catalog& catalog, Registry& registry, std::string_view kind,
                               std::string_view name) {
  if (kind == "flavor") return describe_flavor(catalog, registry, name);
  const Component& component = registry.component(kind, name);
  const Origin& origin = registry.origin(component);
  std::string text = component.kind + " " + component.name + ": " + component.help + "\n  plugin " +
                     origin.plugin + " " + origin.version + ", " + origin.file + "\n";
  if (const auto abilities = abilities_of(component); !abilities.empty()) {
    text += "  abilities";
    for (const std::string& ability : abilities) text += " " + ability;
    text += "\n";
  }
  text += options_text(component.schema);
  if (kind == "model") text += flavors_text(catalog, registry, component.name);
  return text;
}

Value component_json(const Catalog& catalog, Registry& registry, std::string_view kind,
                     std::string_view name) {
  TITAN_CHECK(kind != "flavor", config,
              "a flavor has no schema of its own; see: titan describe model ",
              split_flavor(name, catalog.names("model")).model, " --json");
  const Component& component = registry.component(kind, name);
  const Origin& origin = registry.origin(component);
  const std::vector<std::string> abilities = abilities_of(component);
  Value json = Value::map({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                           {"title", component.kind + " " + component.name},
                           {"description", component.help},
                           {"x-titan-kind", component.kind},
                           {"x-titan-name", component.name},
                           {"x-titan-plugin", origin.plugin},
                           {"x-titan-version", origin.version},
                           {"x-titan-file", origin.file},
                           {"x-titan-abilities", Value::List(abilities.begin(), abilities.end())}});
  const Value schema = json_schema(component.schema);
  for (const auto& [key, value] : schema.as_map()) json[key] = value;
  if (kind == "model") {
    Value flavors = Value::map();
    for (const std::string& flavor_name : flavors_of(catalog, component.name)) {
      const Flavor& flavor = registry.flavor(component.name, flavor_name);
      flavors[flavor_name] = Value::map({{"description", flavor.help}, {"preset", flavor.preset}});
    }
    json["x-titan-flavors"] = std::move(flavors);
  }
  return json;
}

}  // namespace titan::core
