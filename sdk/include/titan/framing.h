// What a document becomes before it is packed or stored: its ids and what frames them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/dataset.h>
#include <titan/export.h>
#include <titan/tokenizer.h>

namespace titan {

/// Put around the ids of a text, each where it is wanted and there is one.
struct Framing {
  std::optional<int32_t> bos, eos;
};

/// What training frames documents with.
inline Framing framing_of(const Tokenizer& tokenizer) {
  const SpecialTokens special = tokenizer.special_tokens();
  return {.bos = special.bos, .eos = special.eos};
}

/// Appends `document` as a model reads it: text as BOS + ids + EOS, tokens as they are. data Error:
/// it is a conversation.
TITAN_API void append_tokens(const Document& document, const Tokenizer& tokenizer,
                             const Framing& framing, std::vector<int32_t>& tokens);

}  // namespace titan
