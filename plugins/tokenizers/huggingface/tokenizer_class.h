// The special tokens that a tokenizer class of transformers has of its own accord: folders that
// name the class alone rely on them. Used by tokenizer_config.
#pragma once

#include <string>
#include <string_view>

namespace titan::huggingface {

/// transformers' class for the folder, or empty where it reads tokenizer.json without a class.
/// `named`: tokenizer_class of tokenizer_config.json, else of config.json; `model_type`: of
/// config.json; either may be empty. `is_byte_level`: what tokenizer.json is.
std::string tokenizer_class_of(std::string_view named, std::string_view model_type,
                               bool is_byte_level);

/// The token that `tokenizer_class` gives to `field`, such as "bos_token", where no file names one;
/// empty: none.
std::string_view token_of_class(std::string_view tokenizer_class, std::string_view field);

}  // namespace titan::huggingface
