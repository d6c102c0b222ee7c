// Conversations to what a model reads: text by a chat template, and its ids. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/chat_template.h>
#include <titan/export.h>
#include <titan/tokenizer.h>

namespace titan {

class SpecialTokenText;

class TITAN_API ChatText {
 public:
  /// Both outlive this. `tokenizer`: may be null, then there are no ids. `tokenizer_name`: for the
  /// message. Throws a config Error for a tokenizer that cannot encode special tokens which a text
  /// spells out.
  ChatText(const ChatTemplate& chat_template, const Tokenizer* tokenizer,
           const std::string& tokenizer_name);

  /// `conversation`: {"messages": [...], ...} as ChatTemplate::render takes it. With
  /// `adds_generation_prompt` the text ends where the assistant begins to speak. Throws a data
  /// Error where the template refuses it.
  std::string text(const Value& conversation, bool adds_generation_prompt) const;
  /// Of such a text; nothing is added to it.
  std::vector<int32_t> ids(const std::string& text) const;

 private:
  const ChatTemplate& template_;
  const SpecialTokenText* tokenizer_;
};

}  // namespace titan
