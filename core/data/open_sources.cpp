#include "core/data/open_sources.h"

#include "core/config/selection/component_error.h"
#include "core/config/selection/make_selected.h"
#include "core/data/no_tokenizer.h"

namespace titan::core {

std::unique_ptr<Tokenizer> open_tokenizer(const JobConfig& config, Registry& registry) {
  const std::string& folder = config.model.hf_assets_path;
  return opening(config.tokenizer, "model.hf_assets_path", folder, config, [&] {
    return tokenizer_or_none([&] {
      return make_selected<Tokenizer>(registry, config.tokenizer, TokenizerContext{folder});
    });
  });
}

std::unique_ptr<ChatTemplate> open_chat_template(const JobConfig& config, Registry& registry) {
  if (config.chat_template.name.empty()) return nullptr;
  const std::string& folder = config.model.hf_assets_path;
  return opening(config.chat_template, "model.hf_assets_path", folder, config, [&] {
    return make_selected<ChatTemplate>(registry, config.chat_template, ChatTemplateContext{folder});
  });
}

std::unique_ptr<Dataset> open_dataset(const DataSource& source, const JobConfig& config,
                                      uint64_t seed, Registry& registry) {
  try {
    return opening(source.dataset, source.path_key, source.path, config, [&] {
      return make_selected<Dataset>(registry, source.dataset, DatasetContext{source.path, seed});
    });
  } catch (const ConfigError&) {
    throw;
  } catch (Error& e) {
    e.with_context("while opening data source '" + source.name + "'");
    throw;
  }
}

void require_tokenizer(const Dataset& dataset, const Tokenizer& tokenizer, const std::string& name,
                       const JobConfig& config) {
  try {
    require_tokenizer_for(dataset, tokenizer, name);
  } catch (const Error& error) {
    refuse_path(error, "model.hf_assets_path", config.model.hf_assets_path, config);
    throw;
  }
}

}  // namespace titan::core
