// The tokens of conversations, and which of them are learned. Used by the row reader.
#pragma once

#include <cstdint>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "core/data/tokenized_document.h"

namespace titan::core {

/// The ids are those of the whole text encoded at once. Learned is, as TRL's assistant-only loss
/// has it:
/// - of a chat each answer: what render(messages up to the answer) has more than render(messages
///   before it, with the generation prompt). Answers are the messages of the role "assistant" from
///   Conversation::first_target on, but for those with "weight": 0. White space behind the special
///   token that ends a turn belongs to the frame, not to the answer;
/// - of a prompt and its completion the completion and EOS; BOS stands before the prompt.
/// A token that is partly prompt and partly answer is learned, as transformers' masks have it. The
/// first token of a sequence never is: nothing predicts it.
///
/// Thread-safe: the loader threads share the tokenizer and the template.
class ConversationTokens {
 public:
  /// `chat_template`: null where the job has none. Both outlive this.
  ConversationTokens(const Tokenizer& tokenizer, const ChatTemplate* chat_template);

  /// Appends `conversation` as one more sequence of `document`. data Error: a template that refuses
  /// the conversation, or that does not render the start of a conversation as the start of the
  /// whole; a chat without a template.
  void append(const Conversation& conversation, TokenizedDocument& document) const;

 private:
  void append_chat(const Conversation& conversation, TokenizedDocument& document) const;
  void append_completion(const Conversation& conversation, TokenizedDocument& document) const;

  const Tokenizer& tokenizer_;
  const SpecialTokenText* special_text_;  // null: the tokenizer does not read special tokens
  const ChatTemplate* chat_template_;
};

}  // namespace titan::core
