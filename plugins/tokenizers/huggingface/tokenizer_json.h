// Reads tokenizer.json together with tokenizer_config.json: the files' top level; each component
// reads its own part. Used by the tokenizer and tokenizer_folder.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <titan/tokenizer.h>

#include "../common/engine.h"
#include "decoder.h"
#include "json_parts.h"
#include "normalizer.h"
#include "pre_tokenizer.h"
#include "tokenizer_config.h"
#include "vocabulary.h"
#include "word_level.h"

namespace titan::huggingface {

inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kConfigFile = "tokenizer_config.json";

using Model = std::variant<bpe::Engine, WordLevel>;

/// The parts of a tokenizer, made from its files.
struct TokenizerParts {
  std::string name;  ///< the folder, for messages
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Model model;
  Decoder decoder;
  std::vector<AddedToken> added_tokens;
  SpecialTokens special_tokens;
};

/// `json` and `config_json`: the contents of tokenizer.json and of tokenizer_config.json, the
/// latter empty if there is no such file. `name`: the folder, for messages. `others`: its other
/// files. Throws a data Error that names the file and the component that is missing, wrong or not
/// supported.
TokenizerParts parse_tokenizer_json(std::string_view json, std::string_view config_json,
                                    const std::string& name, const OtherFiles& others = {});

/// Adds the configuration's tokens to the vocabulary, those without an id after the last id, and to
/// `added_tokens`. Returns their ids.
SpecialTokens complete_tokens(const TokenizerConfig& config, Vocabulary& vocabulary,
                              std::vector<AddedToken>& added_tokens);

}  // namespace titan::huggingface
