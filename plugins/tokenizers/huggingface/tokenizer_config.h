// tokenizer_config.json and the files beside it: name the special tokens, and may add tokens that
// tokenizer.json lacks.
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

/// Contents of files, empty where there is none. `folder`: theirs, for messages.
struct FilesBeside {
  std::string special_tokens_map;  ///< special_tokens_map.json
  std::string model_config;        ///< config.json, for the class where the tokenizer names none
  std::string folder;
};

/// Who names a token, as in transformers: special_tokens_map.json, unless tokenizer_config.json has
/// added_tokens_decoder; then tokenizer_config.json; then the tokenizer's class.
class TokenizerConfig {
 public:
  /// An empty `content` is an empty configuration. Throws a data Error for what is not JSON.
  /// `is_byte_level`: what tokenizer.json is.
  TokenizerConfig(std::string_view content, std::string file, const FilesBeside& beside,
                  bool is_byte_level);

  /// Warns when add_bos_token says other than tokenizer.json, whose post_processor puts a token
  /// before a text when `begins`.
  void warn_of_contradiction(bool begins) const;
  /// The tokens of added_tokens_decoder, with the ids given there. One that the vocabulary has must
  /// have the same id.
  void add_listed_tokens(Vocabulary& vocabulary, std::vector<AddedToken>& added_tokens) const;
  /// bos_token, eos_token, pad_token, unk_token, sep_token, cls_token and mask_token become special
  /// tokens; the ones without an id get the ids behind the last.
  SpecialTokens add_named_tokens(Vocabulary& vocabulary,
                                 std::vector<AddedToken>& added_tokens) const;

 private:
  JsonView view() const;
  std::optional<AddedToken> named_token(std::string_view field) const;

  std::string file_, map_file_, class_;
  std::shared_ptr<const nlohmann::json> map_;   // null: not read
  std::shared_ptr<const nlohmann::json> json_;  // shared: the type is incomplete here
};

}  // namespace titan::huggingface
