// Optional interface of tokenizers: encodes text in which special tokens are spelled out, such as
// the output of chat templates. No torch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(special_token_text);

namespace titan {

/// Derive from it in addition to Tokenizer.
class TITAN_API SpecialTokenText {
 public:
  virtual ~SpecialTokenText();

  /// [any thread] Appends the ids of `utf8`. The text of a special token becomes that token; text
  /// between them is encoded as by Tokenizer::encode. No other tokens are added. The same ids as
  /// transformers' encode(text, add_special_tokens=False).
  virtual void encode_with_special_tokens(std::string_view utf8,
                                          std::vector<int32_t>& ids) const = 0;
};

}  // namespace titan
