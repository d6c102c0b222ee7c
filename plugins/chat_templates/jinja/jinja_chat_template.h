// The chat template plugin `jinja`: conversations to texts by the template of a model, as
// transformers' apply_chat_template renders it.
//
// transformers 5 leaves out members of messages that are null, gives a message's reasoning under
// all its names, and the template the special tokens of the tokenizer; so does this.
#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <titan/chat_template.h>

#include "template.h"

namespace titan::jinja {

struct JinjaOptions {
  std::string file;           // a template instead of that of the assets; empty: none
  std::string template_name;  // of several; empty: "tool_use" where it fits, else "default"
  std::string date;           // YYYY-MM-DD; empty: today
};

/// See titan/chat_template.h for the contract.
class JinjaChatTemplate final : public ChatTemplate {
 public:
  JinjaChatTemplate(const JinjaOptions& options, ChatTemplateContext context);

  std::string render(const Value& conversation, bool adds_generation_prompt) const override;

 private:
  struct Compiled {
    std::string name;
    std::string place;
    Template program;
  };
  const Compiled& chosen(bool has_tools) const;

  std::vector<Compiled> templates_;
  std::string wanted_;  // a name; empty: by the conversation
  std::vector<std::pair<std::string, Object>> special_tokens_;
  std::time_t now_;
};

}  // namespace titan::jinja
