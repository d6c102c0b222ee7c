// The chat template plugin `jinja`: renders conversations with a model's template, as transformers'
// apply_chat_template.
//
// As transformers 5 it drops null members of messages, passes a message's reasoning under all its
// names, and passes the tokenizer's special tokens to the template.
#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <titan/chat_template.h>

#include "template.h"

namespace titan::jinja {

struct JinjaOptions {
  std::string file;           // a template to use instead of those of the assets; empty: none
  std::string template_name;  // empty: "tool_use" for conversations with tools, else "default"
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
  std::string wanted_;  // a template's name; empty: depends on the conversation
  std::vector<std::pair<std::string, Object>> special_tokens_;
  std::time_t now_;
};

}  // namespace titan::jinja
