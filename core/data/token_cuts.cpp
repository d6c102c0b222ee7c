#include "core/data/token_cuts.h"

#include <algorithm>
#include <span>

namespace titan::core {
namespace {

/// The cuts from the ids of the pieces between places; empty when these ids differ from those of
/// the whole text.
std::vector<TokenCut> cuts_of_pieces(std::string_view text, const std::vector<int32_t>& ids,
                                     const std::vector<size_t>& places, const Encode& encode) {
  std::vector<int32_t> pieces;
  std::vector<TokenCut> cuts;
  size_t begin = 0;
  for (const size_t place : places) {
    encode(text.substr(begin, place - begin), pieces);
    cuts.push_back({pieces.size(), pieces.size()});
    begin = place;
  }
  encode(text.substr(begin), pieces);
  if (pieces != ids) cuts.clear();
  return cuts;
}

/// Encodes the text before `place`. From the first id that differs from those of the whole text,
/// decodes both: the place is where both have the same number of bytes.
TokenCut cut_of_prefix(std::string_view text, const std::vector<int32_t>& ids, size_t place,
                       const Encode& encode, const Tokenizer& tokenizer) {
  std::vector<int32_t> prefix;
  encode(text.substr(0, place), prefix);
  const auto [differs, in_whole] =
      std::mismatch(prefix.begin(), prefix.end(), ids.begin(), ids.end());
  const auto same = static_cast<size_t>(in_whole - ids.begin());
  if (differs == prefix.end()) return {same, same};
  const size_t wanted = tokenizer.decode(std::span(prefix).subspan(same)).size();
  const auto bytes = [&](size_t count) {
    return tokenizer.decode(std::span(ids).subspan(same, count)).size();
  };
  size_t fewest = 0, most = ids.size() - same;  // bounds of the tokens up to the place
  while (fewest < most) {
    const size_t middle = (fewest + most) / 2;
    if (bytes(middle) < wanted)
      fewest = middle + 1;
    else
      most = middle;
  }
  const bool reaches_over = most > 0 && bytes(most) > wanted;
  return {.ended = same + most - (reaches_over ? 1 : 0), .begun = same + most};
}

}  // namespace

std::vector<TokenCut> cut_tokens(std::string_view text, const std::vector<int32_t>& ids,
                                 const std::vector<size_t>& places, const Encode& encode,
                                 const Tokenizer& tokenizer) {
  std::vector<TokenCut> cuts = cuts_of_pieces(text, ids, places, encode);
  if (cuts.empty())
    for (const size_t place : places)
      cuts.push_back(cut_of_prefix(text, ids, place, encode, tokenizer));
  return cuts;
}

}  // namespace titan::core
