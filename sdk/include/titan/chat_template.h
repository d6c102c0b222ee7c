// Plugin kind `chat_template`: renders a conversation as the text that a model reads. No torch.
#pragma once

#include <string>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// Inputs of a chat template.
struct ChatTemplateContext {
  std::string assets_path;  ///< folder named by [model] hf_assets_path
};

/// Thread-safe after construction: several loader threads share one instance.
class TITAN_API ChatTemplate {
 public:
  static constexpr const char* kKind = "chat_template";
  using Interface = ChatTemplate;
  using Context = ChatTemplateContext;

  virtual ~ChatTemplate();

  /// [any thread] Returns the text of a conversation with all special tokens, BOS included. The
  /// caller encodes it with special tokens parsed and none added
  /// (SpecialTokenText::encode_with_special_tokens).
  ///
  /// `conversation` is a map of "messages", a list of {"role", "content", ...}, and of the
  /// template's other variables, such as "tools" and "documents" (as in transformers'
  /// apply_chat_template). With `adds_generation_prompt` the text ends where the assistant's answer
  /// begins. Throws a data Error with the template's own message when the template rejects the
  /// conversation.
  virtual std::string render(const Value& conversation, bool adds_generation_prompt) const = 0;
};

}  // namespace titan
