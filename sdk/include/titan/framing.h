// Turns a document into token ids framed by BOS and EOS, before packing or storing. Used by the
// data loader and titan tokenize.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/dataset.h>
#include <titan/export.h>
#include <titan/tokenizer.h>

namespace titan {

/// The special tokens around the ids of a text; unset: none.
struct Framing {
  std::optional<int32_t> bos, eos;
};

/// The framing that training uses.
inline Framing framing_of(const Tokenizer& tokenizer) {
  const SpecialTokens special = tokenizer.special_tokens();
  return {.bos = special.bos, .eos = special.eos};
}

/// Appends the ids of `document`: BOS + ids + EOS for text; tokens unchanged. Throws a data Error
/// for a conversation.
TITAN_API void append_tokens(const Document& document, const Tokenizer& tokenizer,
                             const Framing& framing, std::vector<int32_t>& tokens);

}  // namespace titan
