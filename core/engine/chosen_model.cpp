#include "core/engine/chosen_model.h"

#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "core/config/partial_resolve.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/default_plugins.h"
#include "core/config/selection/make_selected.h"
#include "core/config/selection/registry_lookup.h"
#include "core/exchange/hf_folder.h"

namespace titan::core {

ChosenModel::ChosenModel(const std::string& command, const std::vector<std::string>& arguments,
                         const std::optional<CheckpointManifest>& manifest,
                         const std::filesystem::path& folder, CountedConverters converters)
    : sources_(model_sources(arguments, manifest, folder)),
      catalog_(plugin_catalog(sources_)),
      registry_(catalog_) {
  RegistryLookup lookup(catalog_, registry_);
  choose_converters(sources_, converters, lookup);
  config_ = resolve_part(sources_, lookup, {.command = command});
  model_ = with_places(config_, [&] { return build_meta_model(config_, registry_); });
  if (converters == CountedConverters::none) return;
  for (const Selection& chosen : config_.transforms) {
    if (chosen.kind != "converter" || !can_export(registry_.component(chosen.kind, chosen.name)))
      continue;
    TITAN_CHECK(!converter_, config, "converters '", converter_->name, "' and '", chosen.name,
                "' both change exported weights; leave one of them out with "
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
    log::warn("the tokenizer in '" + assets + "' is copied without a check: " + e.what());
    return nullptr;
  }
  TITAN_CHECK(tokenizer->vocab_size() <= model().vocab_size(), config, "the tokenizer in '", assets,
              "' has ", tokenizer->vocab_size(), " ids, but ", name(), " has room for ",
              model().vocab_size(), "; set model.hf_assets_path to the model's own tokenizer");
  return tokenizer;
}

}  // namespace titan::core
