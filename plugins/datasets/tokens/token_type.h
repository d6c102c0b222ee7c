// Integer types of token ids in files. Used by the datasets `megatron` and `tokens`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace titan::datasets {

enum class TokenType { uint8, int8, int16, uint16, int32, uint32, int64 };

/// Bytes per id.
size_t width_of(TokenType type);
/// "uint16", ...
const char* name_of(TokenType type);

/// Decodes `count` little-endian ids at `bytes` (of any alignment) into `ids`. Returns `count`, or
/// the index of the first id that is negative or above 2^31 - 1; the contents of `ids` are then
/// undefined.
size_t decode_ids(TokenType type, const char* bytes, size_t count, int32_t* ids);
/// The id at `bytes`, not checked.
int64_t decode_id(TokenType type, const char* bytes);

}  // namespace titan::datasets
