#include <titan/framing.h>

#include <titan/error.h>

namespace titan {

void append_tokens(const Document& document, const Tokenizer& tokenizer, const Framing& framing,
                   std::vector<int32_t>& tokens) {
  TITAN_CHECK(document.conversations.empty(), data,
              "the document is a conversation, of which only parts count in the loss; only a "
              "training run reads it");
  if (document.is_tokenised) {
    tokens.insert(tokens.end(), document.tokens.begin(), document.tokens.end());
    return;
  }
  if (framing.bos) tokens.push_back(*framing.bos);
  tokenizer.encode(document.text, tokens);
  if (framing.eos) tokens.push_back(*framing.eos);
}

}  // namespace titan
