// Optional interface of tokenizers: text in which special tokens are spelled out, as chat templates
// write it. No torch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(special_token_text);

namespace titan {

/// Derive from it beside Tokenizer.
class TITAN_API SpecialTokenText {
 public:
  virtual ~SpecialTokenText();

  /// [any thread] Appends the ids of `utf8`, in which the text of a special token is that token;
  /// what stands between them is encoded as Tokenizer::encode does. Nothing is added. The same ids
  /// as transformers' encode(text, add_special_tokens=False).
  virtual void encode_with_special_tokens(std::string_view utf8,
                                          std::vector<int32_t>& ids) const = 0;
};

}  // namespace titan
