// Conversations to what a model reads: text by a chat template, and its ids. Used by titan
// chat-template and titan generate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/chat_template.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "core/config/resolve.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// Lets a job that names no chat template have the one of most models.
void choose_chat_template(JobSources& sources);

class ChatText {
 public:
  /// Of a job that names a chat template. `tokenizer`: may be null, then there are no ids; else it
  /// outlives this. Throws as the component does, and a config Error for a tokenizer that cannot
  /// encode special tokens which a text spells out.
  ChatText(const JobConfig& config, Registry& registry, const Tokenizer* tokenizer);

  /// `conversation`: {"messages": [...], ...} as ChatTemplate::render takes it. With
  /// `adds_generation_prompt` the text ends where the assistant begins to speak. Throws a data
  /// Error where the template refuses it.
  std::string text(const Value& conversation, bool adds_generation_prompt) const;
  /// Of such a text; nothing is added to it.
  std::vector<int32_t> ids(const std::string& text) const;

 private:
  std::unique_ptr<ChatTemplate> template_;
  const SpecialTokenText* tokenizer_;
};

}  // namespace titan::core
