// What a folder of assets says of chat templates: their texts, and the special tokens that they
// name. Used by JinjaChatTemplate.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace titan::jinja {

struct NamedTemplate {
  std::string name;  ///< "default", "tool_use", ...
  std::string text;
  std::string place;  ///< the file, for messages
};

struct TemplateFolder {
  std::vector<NamedTemplate> templates;
  std::vector<std::pair<std::string, std::string>> special_tokens;  ///< "bos_token", "<s>"
};

/// By the rules of transformers 5: chat_template.jinja and additional_chat_templates/NAME.jinja, or
/// else `chat_template` of tokenizer_config.json, a text or [{name, template}]; special tokens of
/// tokenizer_config.json, and of special_tokens_map.json where the former lists no added tokens.
/// `file`: one template instead of all these; empty: none. Throws an io or data Error that names
/// the file.
TemplateFolder read_template_folder(const std::string& folder, const std::string& file);

}  // namespace titan::jinja
