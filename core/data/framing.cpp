#include "core/data/framing.h"

namespace titan::core {

void append_tokens(const Document& document, const Tokenizer& tokenizer, const Framing& framing,
                   std::vector<int32_t>& tokens) {
  if (document.is_tokenised) {
    tokens.insert(tokens.end(), document.tokens.begin(), document.tokens.end());
    return;
  }
  if (framing.bos) tokens.push_back(*framing.bos);
  tokenizer.encode(document.text, tokens);
  if (framing.eos) tokens.push_back(*framing.eos);
}

}  // namespace titan::core
