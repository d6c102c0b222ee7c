#include "core/parts/chosen_chat.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "core/config/partial_resolve.h"
#include "core/config/selection/component_error.h"
#include "core/config/selection/default_plugins.h"
#include "core/config/selection/partial_lookup.h"
#include "core/data/no_tokenizer.h"
#include "core/data/open_sources.h"

namespace titan::core {
namespace {

bool decides_chat(const KeyPath& path) {
  return path[0] == "chat_template" || path[0] == "tokenizer" || path[0] == "plugins" ||
         path == KeyPath{"model", "hf_assets_path"} || path == KeyPath{"model", "tokenizer_path"};
}

JobSources chat_sources(const std::vector<std::string>& arguments) {
  JobSources sources = read_sources(arguments);
  keep_settings(sources.file, decides_chat);
  choose_chat_template(sources);
  return sources;
}

JobConfig chat_config(const JobSources& sources, const Catalog& catalog, Registry& registry) {
  PartialLookup lookup(catalog, registry, {ChatTemplate::kKind, Tokenizer::kKind});
  return resolve_part(sources, lookup);
}

}  // namespace

void choose_chat_template(JobSources& sources) {
  static const std::string kFlag = "--chat_template.name";
  const auto names_one = [](const Setting& setting) {
    return setting.path == KeyPath{"chat_template", "name"} && !setting.value.is_null();
  };
  const auto& settings = sources.file.settings;
  const auto& words = sources.arguments;
  if (std::any_of(settings.begin(), settings.end(), names_one) ||
      std::any_of(words.begin(), words.end(),
                  [](const std::string& word) { return word.starts_with(kFlag); }))
    return;
  sources.arguments.push_back(kFlag);
  sources.arguments.push_back(default_plugins::kChatTemplate);
}

ChosenChat::ChosenChat(const ChatRequest& request)
    : ChosenChat(chat_sources(request.job), request.needs_ids) {}

ChosenChat::ChosenChat(const JobSources& sources, bool needs_ids)
    : catalog_(plugin_catalog(sources)),
      registry_(catalog_),
      config_(chat_config(sources, catalog_, registry_)) {
  with_places(config_, [&] {
    if (needs_ids) {
      tokenizer_ = open_tokenizer(config_, registry_);
      if (const NoTokenizer* none = missing_tokenizer(*tokenizer_)) throw none->reason();
    }
    template_ = open_chat_template(config_, registry_);
    chat_.emplace(*template_, tokenizer_.get(), config_.tokenizer.name);
  });
}

}  // namespace titan::core
