// Reads the chat templates and special tokens of a folder of assets. Used by JinjaChatTemplate.
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

/// By the rules of transformers 5. Templates: chat_template.jinja and
/// additional_chat_templates/NAME.jinja, else `chat_template` of tokenizer_config.json, a text or
/// [{name, template}]. Special tokens: of tokenizer_config.json, and of special_tokens_map.json if
/// the former lists no added tokens. `file`: one template to read instead; empty: none. Throws an
/// io or data Error that names the file.
TemplateFolder read_template_folder(const std::string& folder, const std::string& file);

}  // namespace titan::jinja
