// Converts conversations to text, by a chat template, and text to token ids. Commands get it from
// titan/engine.h and titan/job_parts.h. No torch.
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
  /// Both outlive this object. `tokenizer`: may be null if ids() is never called. `tokenizer_name`:
  /// for the error message. Throws a config Error for a tokenizer that cannot parse special tokens
  /// in text.
  ChatText(const ChatTemplate& chat_template, const Tokenizer* tokenizer,
           const std::string& tokenizer_name);

  /// See ChatTemplate::render.
  std::string text(const Value& conversation, bool adds_generation_prompt) const;
  /// Token ids of a text from text(), with no special tokens added.
  std::vector<int32_t> ids(const std::string& text) const;

 private:
  const ChatTemplate& template_;
  const SpecialTokenText* tokenizer_;
};

}  // namespace titan
