// Reads tokenizer_config.json and related files, which name the special tokens and may add tokens
// that tokenizer.json lacks.
// Used by tokenizer_json and tokenizer_folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <titan/tokenizer.h>

#include "json_parts.h"
#include "vocabulary.h"

namespace titan::huggingface {

inline constexpr const char* kSpecialTokensMapFile = "special_tokens_map.json";

/// Contents of other files of the folder, empty if missing. `folder`: for messages.
struct OtherFiles {
  std::string special_tokens_map;  ///< special_tokens_map.json
  std::string model_config;        ///< config.json, for the class if the tokenizer names none
  std::string folder;
};

/// Sources of a special token, as in transformers: special_tokens_map.json, unless
/// tokenizer_config.json has added_tokens_decoder; then tokenizer_config.json; then the tokenizer's
/// class.
class TokenizerConfig {
 public:
  /// An empty `content` is an empty configuration. Throws a data Error if it is not JSON.
  /// `is_byte_level`: whether tokenizer.json is byte-level.
  TokenizerConfig(std::string_view content, std::string file, const OtherFiles& others,
                  bool is_byte_level);

  /// Warns if add_bos_token differs from tokenizer.json. `begins`: its post_processor adds a token
  /// before a text.
  void warn_of_contradiction(bool begins) const;
  /// The tokens of added_tokens_decoder, with the ids given there. A token that the vocabulary
  /// already has must have the same id.
  void add_listed_tokens(Vocabulary& vocabulary, std::vector<AddedToken>& added_tokens) const;
  /// bos_token, eos_token, pad_token, unk_token, sep_token, cls_token and mask_token become special
  /// tokens; those without an id get the next free ids.
  SpecialTokens add_named_tokens(Vocabulary& vocabulary,
                                 std::vector<AddedToken>& added_tokens) const;

 private:
  JsonView view() const;
  std::optional<AddedToken> named_token(std::string_view field) const;

  std::string file_, map_file_, class_;
  std::shared_ptr<const nlohmann::json> map_;   // null: not read
  std::shared_ptr<const nlohmann::json> json_;  // shared_ptr: the type is incomplete here
};

}  // namespace titan::huggingface
