// Plugin kind `chat_template`: a conversation to the text that a model reads. No torch.
#pragma once

#include <string>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// What the run lends to a chat template.
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

  /// [any thread] The text of a conversation, with every special token that frames it, BOS among
  /// them: it is to be encoded with special tokens parsed and none added
  /// (SpecialTokenText::encode_with_special_tokens).
  ///
  /// `conversation` is a map: "messages", a list of {"role", "content", ...}, and what else the
  /// template knows, such as "tools" and "documents" (transformers' apply_chat_template). With
  /// `adds_generation_prompt` the text ends where the assistant begins to speak. Throws a data
  /// Error with the template's own words when it refuses the conversation.
  virtual std::string render(const Value& conversation, bool adds_generation_prompt) const = 0;
};

}  // namespace titan
