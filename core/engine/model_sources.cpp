#include "core/engine/model_sources.h"

#include <algorithm>
#include <set>
#include <utility>

#include <titan/error.h>

#include "core/config/legacy/legacy_names.h"
#include "core/config/partial_resolve.h"
#include "core/config/sources/collect.h"
#include "core/config/sources/toml_writer.h"

namespace titan::core {
namespace {

const KeyPath kConverters = {"model", "converters"};

/// Keeps sections of converters as well; choose_converters removes those that do not count.
void keep_model_settings(SettingList& list) {
  keep_settings(list, [](const KeyPath& path) {
    static const std::set<std::string> kKept = {"model", "tokenizer", "plugins", "converter"};
    return kKept.contains(path[0]) || path == KeyPath{"training", "seq_len"};
  });
}

/// The components of the named converters. A missing one is an error, because only that plugin
/// knows how it changed the weights.
std::vector<const Component*> find_converters(const Given& named, ComponentLookup& lookup) {
  std::vector<const Component*> found;
  std::vector<std::pair<std::string, std::string>> missing;  // with the reason, where there is one
  std::string others;
  for (const Value& item : named.value.as_list()) {
    const std::string name(current_converter_name(item.as_string()));
    std::string why;
    if (const Component* component = lookup.find("converter", name, why)) {
      found.push_back(component);
      others += (others.empty() ? "" : ",") + name;
    } else {
      missing.emplace_back(name, why);
    }
  }
  if (missing.empty()) return found;
  Diagnostics wrong;
  for (const auto& [name, why] : missing)
    wrong.add({.message = "converter '" + name + "' of model.converters " +
                          (why.empty() ? "is not installed" : "cannot be used") +
                          ": it may have stored weights in a form that only it can read",
               .where = named.where,
               .hint = "install its plugin or name its folder with --plugins.paths; "
                       "--model.converters \"" +
                       others + "\" converts without it",
               .details = why.empty() ? lookup.search_trail() : why,
               .see = "titan list converter"});
  throw ConfigError(wrong);
}

/// Removes the file's settings of converters that are not in `counted`.
void keep_converters(SettingList& list, const std::vector<const Component*>& counted) {
  const auto is_counted = [&](const std::string& name) {
    return std::any_of(counted.begin(), counted.end(), [&](const Component* component) {
      return component->name == current_converter_name(name);
    });
  };
  keep_settings(list, [&](const KeyPath& path) {
    return path[0] != "converter" || (path.size() >= 2 && is_counted(path[1]));
  });
  for (Setting& setting : list.settings)
    if (setting.path == kConverters && setting.value.is_list())
      std::erase_if(setting.value.as_list(), [&](const Value& name) {
        return name.is_string() && !is_counted(name.as_string());
      });
}

}  // namespace

bool can_export(const Component& component) {
  return std::count(component.abilities.begin(), component.abilities.end(), "ExportTransform") > 0;
}

void choose_converters(JobSources& sources, CountedConverters converters, ComponentLookup& lookup) {
  std::vector<const Component*> counted;
  if (converters == CountedConverters::exporting) {
    const Collected first = peek_core_keys(sources.file, sources.arguments, 1);
    const Given* named = first.given.find(kConverters);
    if (named && named->is_valid) counted = find_converters(*named, lookup);
  }
  std::erase_if(counted, [](const Component* component) { return !can_export(*component); });
  keep_converters(sources.file, counted);
}

JobSources model_sources(const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder) {
  JobSources sources = read_sources(arguments);
  if (!sources.config_file && manifest) {
    sources = read_sources("config in " + (folder / kManifestName).string(),
                           to_toml(manifest->config), arguments);
    keep_model_settings(sources.file);
    return sources;
  }
  keep_model_settings(sources.file);
  const auto names_assets = [](const Setting& setting) {
    return setting.path == KeyPath{"model", "hf_assets_path"} ||
           setting.path == KeyPath{"model", "tokenizer_path"};
  };
  if (std::none_of(sources.file.settings.begin(), sources.file.settings.end(), names_assets))
    sources.arguments.insert(
        sources.arguments.begin(),  // so that the user's arguments come later
        {"--model.hf_assets_path", std::filesystem::absolute(folder).lexically_normal().string()});
  return sources;
}

}  // namespace titan::core
