// Default special tokens of transformers' tokenizer classes, for folders that only name the class.
// Used by tokenizer_config.
#pragma once

#include <string>
#include <string_view>

namespace titan::huggingface {

/// transformers' class for the folder, or empty if it reads tokenizer.json without a class.
/// `named`: tokenizer_class of tokenizer_config.json, else of config.json; `model_type`: of
/// config.json; either may be empty. `is_byte_level`: whether tokenizer.json is byte-level.
std::string tokenizer_class_of(std::string_view named, std::string_view model_type,
                               bool is_byte_level);

/// The default token of `tokenizer_class` for `field`, such as "bos_token"; empty: none.
std::string_view token_of_class(std::string_view tokenizer_class, std::string_view field);

}  // namespace titan::huggingface
