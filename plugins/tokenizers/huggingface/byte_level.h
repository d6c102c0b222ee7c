// The byte-level alphabet: 256 printable characters that stand for the 256 bytes in the
// vocabularies of GPT-2, Llama 3 and Qwen. Used when a vocabulary is read; encoding and decoding
// work on bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace titan::huggingface {

/// The bytes that `token` spells ("\u0120the" -> " the"), nullopt if one of its characters is
/// outside the alphabet.
std::optional<std::string> bytes_of_token(std::string_view token);
/// The character of `byte`, in UTF-8.
std::string token_of_byte(uint8_t byte);

}  // namespace titan::huggingface
