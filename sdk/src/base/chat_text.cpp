#include <titan/chat_text.h>

#include <titan/error.h>
#include <titan/special_token_text.h>

namespace titan {

ChatText::ChatText(const ChatTemplate& chat_template, const Tokenizer* tokenizer,
                   const std::string& tokenizer_name)
    : template_(chat_template), tokenizer_(dynamic_cast<const SpecialTokenText*>(tokenizer)) {
  TITAN_CHECK(
      tokenizer_ || !tokenizer, config, "tokenizer '", tokenizer_name,
      "' cannot encode special tokens that a text spells out, as chat templates write them: "
      "it does not implement titan/special_token_text.h; choose another tokenizer.name");
}

std::string ChatText::text(const Value& conversation, bool adds_generation_prompt) const {
  return template_.render(conversation, adds_generation_prompt);
}

std::vector<int32_t> ChatText::ids(const std::string& text) const {
  TITAN_ASSERT(tokenizer_, "ids of a conversation without a tokenizer");
  std::vector<int32_t> ids;
  tokenizer_->encode_with_special_tokens(text, ids);
  return ids;
}

}  // namespace titan
