#include "core/commands/chosen_model.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/log.h>

#include "core/checkpoint/hf_folder.h"
#include "core/config/registry_lookup.h"
#include "core/config/toml_writer.h"

namespace titan::core {
namespace {

void keep_model_settings(SettingList& list) {
  const auto is_other = [](const KeyPath& path) {
    const bool is_length = path == KeyPath{"training", "seq_len"};
    const bool is_model = path[0] == "model" || path[0] == "tokenizer" || path[0] == "plugins";
    return !is_length && (!is_model || path == KeyPath{"model", "converters"});
  };
  std::erase_if(list.settings, [&](const Setting& setting) { return is_other(setting.path); });
  std::erase_if(list.tables, [&](const TableHeader& table) { return is_other(table.path); });
}

JobSources sources_of(const std::vector<std::string>& arguments,
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

}  // namespace

ChosenModel::ChosenModel(const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder)
    : sources_(sources_of(arguments, manifest, folder)),
      catalog_(plugin_search_path(sources_.plugin_paths)),
      registry_(catalog_) {
  RegistryLookup lookup(catalog_, registry_);
  Diagnostics all, wrong;
  std::optional<JobConfig> config = try_resolve(sources_, lookup, {.world_size = 1}, all);
  for (const Diagnostic& message : all.sorted()) {
    if (message.severity == Severity::error) wrong.add(message);
    if (message.severity == Severity::warning && config) log::warn(render(message));
  }
  if (!config) throw ConfigError(wrong);  // what is not built yet is not needed here
  config_ = std::move(*config);
  model_ = build_meta_model(config_, registry_);
}

std::unique_ptr<Tokenizer> ChosenModel::tokenizer() {
  const std::string& assets = config_.model.hf_assets_path;
  if (tokenizer_files(assets).empty()) return nullptr;
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
