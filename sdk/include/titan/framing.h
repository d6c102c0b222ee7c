// What a document becomes before it is packed or stored: its ids and what frames them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>

namespace titan::core {

/// Put around the ids of a text, each where it is wanted and there is one.
struct Framing {
  std::optional<int32_t> bos, eos;
};

/// What training frames documents with.
inline Framing framing_of(const Tokenizer& tokenizer) {
  const SpecialTokens special = tokenizer.special_tokens();
  return {.bos = special.bos, .eos = special.eos};
}

/// Warns when the documents of `dataset` are text and `tokenizer` has neither BOS nor EOS. `name`:
/// of the data source; `folder`: of the tokenizer.
void warn_of_bare_documents(const Dataset& dataset, const Tokenizer& tokenizer,
                            const std::string& name, const std::string& folder);

/// Appends `document` as a model reads it: text as BOS + ids + EOS, tokens as they are.
void append_tokens(const Document& document, const Tokenizer& tokenizer, const Framing& framing,
                   std::vector<int32_t>& tokens);

}  // namespace titan::core
