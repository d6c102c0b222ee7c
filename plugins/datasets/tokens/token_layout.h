// Determines the layout of a file of tokens from its first bytes. Used by the dataset `tokens`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plugins/datasets/tokens/token_file.h"

namespace titan::datasets {

enum class TokenFormat {
  automatic,  ///< llm.c by its magic number, datatrove by the suffix .ds, raw if a type is given
  llmc,       ///< a header of 256 int32, then the ids
  raw,        ///< only ids: nanoGPT's train.bin, OLMo's .npy
  datatrove,  ///< raw, with the documents' ends in a second file
};

/// Number of bytes at the start of a file that are inspected.
inline constexpr size_t kTokenHeadBytes = 1024;

/// The layout of a file of `file_size` bytes that starts with `head` (the whole file if it is
/// shorter than kTokenHeadBytes). `type`: the option, unset: from the header. Raw files have no
/// header: they are read as uint16, but throw an Error if they look like uint32. They cannot be
/// recognised, so the user must set their format or type. Not for datatrove. Throws an Error naming
/// `name` if it is another kind of file, with that kind if it is known (NumPy, an evaluation file
/// of llm.c).
TokenLayout parse_token_layout(std::string_view head, uint64_t file_size, TokenFormat format,
                               std::optional<TokenType> type, const std::string& name);

}  // namespace titan::datasets
