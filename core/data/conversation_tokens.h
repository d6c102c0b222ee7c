// Computes the tokens of conversations and their loss mask. Used by the row reader.
#pragma once

#include <cstdint>

#include <titan/chat_template.h>
#include <titan/dataset.h>
#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "core/data/tokenized_document.h"

namespace titan::core {

/// The ids are those of the whole text encoded at once. As in TRL's assistant-only loss, the tokens
/// that contribute to the loss are:
/// - of a chat each answer: the difference between render(messages up to the answer) and
///   render(messages before it, with the generation prompt). Answers are the messages of the role
///   "assistant" from Conversation::first_target on, except those with "weight": 0. White space
///   after the special token that ends a turn is not part of the answer;
/// - of a prompt and its completion the completion and EOS; BOS precedes the prompt.
/// A token that is partly prompt and partly answer contributes, as in transformers' masks. The
/// first token of a sequence never does, because nothing predicts it.
///
/// Thread-safe: the loader threads share the tokenizer and the template.
class ConversationTokens {
 public:
  /// `chat_template`: null where the job has none. Both outlive this.
  ConversationTokens(const Tokenizer& tokenizer, const ChatTemplate* chat_template);

  /// Appends `conversation` as one more sequence of `document`. Throws a data Error when the
  /// template refuses the conversation, when it does not render the start of a conversation as the
  /// start of the whole, and for a chat without a template.
  void append(const Conversation& conversation, TokenizedDocument& document) const;

 private:
  void append_chat(const Conversation& conversation, TokenizedDocument& document) const;
  void append_completion(const Conversation& conversation, TokenizedDocument& document) const;

  const Tokenizer& tokenizer_;
  const SpecialTokenText* special_text_;  // null: the tokenizer does not read special tokens
  const ChatTemplate* chat_template_;
};

}  // namespace titan::core
