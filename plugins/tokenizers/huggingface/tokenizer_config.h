// tokenizer_config.json: names the special tokens, and may add tokens that tokenizer.json lacks.
// Used by tokenizer_json and tokenizer_folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <titan/tokenizer.h>

#include "json_parts.h"
#include "vocabulary.h"

namespace titan::huggingface {

class TokenizerConfig {
 public:
  /// An empty `content` is an empty configuration. Throws a data Error for what is not JSON.
  TokenizerConfig(std::string_view content, std::string file);

  /// The tokens of added_tokens_decoder, with the ids given there. One that the vocabulary has must
  /// have the same id.
  void add_listed_tokens(Vocabulary& vocabulary, std::vector<AddedToken>& added_tokens) const;
  /// bos_token, eos_token, pad_token, unk_token, sep_token, cls_token and mask_token become special
  /// tokens; the ones without an id get the ids behind the last.
  SpecialTokens add_named_tokens(Vocabulary& vocabulary,
                                 std::vector<AddedToken>& added_tokens) const;

 private:
  JsonView view() const;

  std::string file_;
  std::shared_ptr<const nlohmann::json> json_;  // shared: the type is incomplete here
};

}  // namespace titan::huggingface
