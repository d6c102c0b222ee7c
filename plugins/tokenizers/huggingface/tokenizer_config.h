// tokenizer_config.json: names the special tokens, and may add tokens that tokenizer.json lacks.
// Used by tokenizer_json only.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <titan/tokenizer.h>

#include "added_tokens.h"
#include "vocabulary.h"

namespace titan::huggingface {

class TokenizerConfig {
 public:
  /// A file that does not exist is an empty configuration. Throws an Error for one that is not
  /// JSON.
  explicit TokenizerConfig(const std::filesystem::path& file);

  /// Adds the tokens of added_tokens_decoder that tokenizer.json does not have.
  void add_tokens(Vocabulary& vocabulary, std::vector<AddedToken>& added_tokens) const;
  /// bos_token, eos_token and pad_token. Throws a data Error for one that has no id.
  SpecialTokens special_tokens(const Vocabulary& vocabulary) const;

 private:
  JsonView view() const;

  std::string file_;
  std::shared_ptr<const nlohmann::json> json_;  // shared: the type is incomplete here
};

}  // namespace titan::huggingface
