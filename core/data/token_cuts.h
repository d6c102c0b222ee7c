// Finds the tokens of a text before a given place. Used by conversation_tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <titan/tokenizer.h>

namespace titan::core {

/// A place in a text, in tokens. The two numbers differ if a token spans the place.
struct TokenCut {
  size_t ended = 0;  ///< tokens that end at the place or before it
  size_t begun = 0;  ///< tokens that begin before the place
};

using Encode = std::function<void(std::string_view utf8, std::vector<int32_t>& ids)>;

/// Finds each of `places` (ascending byte offsets of `text`, between characters) in `ids` =
/// `encode(text)`. Tokenizers do not report which bytes a token covers, so parts of the text are
/// encoded: the pieces between the places if they give the same ids, else the text before each
/// place. `tokenizer` decodes the ids that differ.
std::vector<TokenCut> cut_tokens(std::string_view text, const std::vector<int32_t>& ids,
                                 const std::vector<size_t>& places, const Encode& encode,
                                 const Tokenizer& tokenizer);

}  // namespace titan::core
