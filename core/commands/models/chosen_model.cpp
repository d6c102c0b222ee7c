#include "core/commands/models/chosen_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "core/config/collect.h"
#include "core/config/component_error.h"
#include "core/config/default_plugins.h"
#include "core/config/legacy_names.h"
#include "core/config/make_selected.h"
#include "core/config/partial_resolve.h"
#include "core/config/registry_lookup.h"
#include "core/config/toml_writer.h"
#include "core/exchange/hf_folder.h"

namespace titan::core {
namespace {

const KeyPath kConverters = {"model", "converters"};

/// Sections of converters stay as well: which of them count is known when the plugins are.
void keep_model_settings(SettingList& list) {
  keep_settings(list, [](const KeyPath& path) {
    static const std::set<std::string> kKept = {"model", "tokenizer", "plugins", "converter"};
    return kKept.contains(path[0]) || path == KeyPath{"training", "seq_len"};
  });
}

/// The components of the converters that are named. One that is not there is an error: nobody else
/// knows what it has done to the weights.
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
                          ": it may have stored weights in a form that others cannot read",
               .where = named.where,
               .hint = "install its plugin or name its folder with --plugins.paths; "
                       "--model.converters \"" +
                       others + "\" converts without it",
               .details = why.empty() ? lookup.search_trail() : why,
               .see = "titan list converter"});
  throw ConfigError(wrong);
}

/// Leaves the file's settings of the converters in `counted` only.
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

bool can_export(const Component& component) {
  return std::count(component.abilities.begin(), component.abilities.end(), "ExportTransform") > 0;
}

}  // namespace

void choose_converters(JobSources& sources, CountedConverters converters, ComponentLookup& lookup) {
  std::vector<const Component*> counted;
  if (converters == CountedConverters::exporting) {
    const Collected first = first_sight(sources.file, sources.arguments, 1);
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
        sources.arguments.begin(),  // an argument of the user comes later
        {"--model.hf_assets_path", std::filesystem::absolute(folder).lexically_normal().string()});
  return sources;
}

ChosenModel::ChosenModel(const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder, CountedConverters converters)
    : sources_(model_sources(arguments, manifest, folder)),
      catalog_(plugin_search_path(sources_.plugin_paths)),
      registry_(catalog_) {
  RegistryLookup lookup(catalog_, registry_);
  choose_converters(sources_, converters, lookup);
  config_ = resolve_part(sources_, lookup, {.command = "titan convert"});
  model_ = with_places(config_, [&] { return build_meta_model(config_, registry_); });
  if (converters == CountedConverters::none) return;
  for (const Selection& chosen : config_.transforms) {
    if (chosen.kind != "converter" || !can_export(registry_.component(chosen.kind, chosen.name)))
      continue;
    TITAN_CHECK(!converter_, config, "converters '", converter_->name, "' and '", chosen.name,
                "' both change what weights are for others; leave one of them out with "
                "--model.converters");
    converter_ = &chosen;
  }
}

std::string ChosenModel::name() const {
  return config_.model_plugin.name + " " + config_.model.flavor +
         (converter_ ? " with " + converter_->name : "");
}

ConvertedModel ChosenModel::converted() {
  if (!device_) device_ = registry_.create<Device>(default_plugins::kHost, Value::map(), {});
  const TransformContext context{.mesh = mesh_, .device = *device_};
  ConvertedModel converted{
      .part = build_meta_model(config_, registry_).part,
      .converter = make_selected<ModelTransform>(registry_, *converter_, context)};
  converted.converter->apply(*converted.part, context);
  return converted;
}

std::unique_ptr<Tokenizer> ChosenModel::tokenizer() {
  const std::string& assets = config_.model.hf_assets_path;
  if (tokenizer_files(assets).empty()) {
    if (!std::filesystem::is_directory(assets))
      log::warn("model.hf_assets_path: there is no folder '" + assets + "'");
    return nullptr;
  }
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = registry_.create<Tokenizer>(config_.tokenizer.name, config_.tokenizer.options,
                                            {.assets_path = assets});
  } catch (const Error& e) {
    log::warn("the tokenizer in '" + assets + "' goes along unread: " + e.what());
    return nullptr;
  }
  TITAN_CHECK(tokenizer->vocab_size() <= model().vocab_size(), config, "the tokenizer in '", assets,
              "' has ", tokenizer->vocab_size(), " ids, but ", name(), " has room for ",
              model().vocab_size(), "; set model.hf_assets_path to the model's own tokenizer");
  return tokenizer;
}

}  // namespace titan::core
