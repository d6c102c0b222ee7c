// What the first bytes of a file of tokens say of it. Used by the dataset `tokens`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/datasets/tokens/token_file.h"

namespace titan::datasets {

enum class TokenFormat {
  automatic,  ///< llm.c by its magic number, datatrove by the suffix .ds, raw where a type is named
  llmc,       ///< a header of 256 int32, then the ids
  raw,        ///< nothing but ids: nanoGPT's train.bin, OLMo's .npy
  datatrove,  ///< raw, with the documents' ends in a second file
};

/// As many of a file's first bytes as are looked at.
inline constexpr size_t kTokenHeadBytes = 1024;

/// The layout of a file of `file_size` bytes that starts with `head`; all of it when it is shorter
/// than kTokenHeadBytes. `type` = what the user says, else it is taken from the header; raw files
/// have none and are taken as uint16, unless they look like uint32: an Error then. Nothing tells
/// them from other files, so that the user has to name their format or type. Not for datatrove.
/// Throws an Error naming `name` for what is not such a file: with its right name where
/// it is known (NumPy, an evaluation file of llm.c).
TokenLayout parse_token_layout(std::string_view head, uint64_t file_size, TokenFormat format,
                               std::optional<TokenType> type, const std::string& name);

}  // namespace titan::datasets
