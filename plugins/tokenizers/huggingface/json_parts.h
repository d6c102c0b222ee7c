// Reads parts of tokenizer.json that occur in several components: patterns and added tokens. Used
// by the components.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../common/added_tokens.h"
#include "../common/pattern.h"
#include "json_view.h"

namespace titan::huggingface {

using bpe::AddedToken;

/// Reads the list, or one entry of tokenizer_config.json's added_tokens_decoder (whose id is the
/// key).
std::vector<AddedToken> read_added_tokens(const JsonView& list);
AddedToken read_added_token(const JsonView& token, int32_t id);

/// Reads {"Regex": "..."} or {"String": "..."}.
std::unique_ptr<bpe::Pattern> read_pattern(const JsonView& view);

/// Reads a string of one character.
std::string read_character(const JsonView& view);

}  // namespace titan::huggingface
