// Which tokens of a text lie before a place in it. Used by conversation_tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <titan/tokenizer.h>

namespace titan::core {

/// A place in a text, in tokens. The two differ where a token reaches over the place.
struct TokenCut {
  size_t ended = 0;  ///< tokens that end at the place or before it
  size_t begun = 0;  ///< tokens that begin before it
};

using Encode = std::function<void(std::string_view utf8, std::vector<int32_t>& ids)>;

/// For each of `places` (ascending byte offsets of `text`, between characters) where it stands in
/// `ids`, which are `encode(text)`. Tokenizers do not say which bytes a token covers; the ids of
/// parts of the text tell it: of the pieces between the places where these give the same ids, else
/// of the text before each place. `tokenizer` decodes what differs.
std::vector<TokenCut> cut_tokens(std::string_view text, const std::vector<int32_t>& ids,
                                 const std::vector<size_t>& places, const Encode& encode,
                                 const Tokenizer& tokenizer);

}  // namespace titan::core
