#include "core/chat/chat_text.h"

#include <algorithm>

#include <titan/error.h>

#include "core/config/default_plugins.h"
#include "core/data/open_sources.h"

namespace titan::core {

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

ChatText::ChatText(const JobConfig& config, Registry& registry, const Tokenizer* tokenizer)
    : template_(open_chat_template(config, registry)),
      tokenizer_(dynamic_cast<const SpecialTokenText*>(tokenizer)) {
  TITAN_CHECK(
      tokenizer_ || !tokenizer, config, "tokenizer '", config.tokenizer.name,
      "' cannot encode special tokens that a text spells out, as chat templates write them: "
      "it does not implement titan/special_token_text.h; choose another tokenizer.name");
}

std::string ChatText::text(const Value& conversation, bool adds_generation_prompt) const {
  return template_->render(conversation, adds_generation_prompt);
}

std::vector<int32_t> ChatText::ids(const std::string& text) const {
  TITAN_ASSERT(tokenizer_, "ids of a conversation without a tokenizer");
  std::vector<int32_t> ids;
  tokenizer_->encode_with_special_tokens(text, ids);
  return ids;
}

}  // namespace titan::core
