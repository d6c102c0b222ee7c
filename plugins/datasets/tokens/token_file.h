// Reads ids at any place of a file of tokens. Used by the datasets `megatron` and `tokens`.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/datasets/common/input_file.h"
#include "plugins/datasets/tokens/token_type.h"

namespace titan::datasets {

/// Type and place of the ids in a file.
struct TokenLayout {
  TokenType type = TokenType::uint16;
  uint64_t first_byte = 0;
  uint64_t num_tokens = 0;
};

/// Note [Token files are read, not mapped]: if a mapped file shrinks or a network disk fails,
/// SIGBUS ends the process without a message; pread gives an error with the file's name. It costs a
/// microsecond per call: from the page cache 270 million tokens a second for documents of 1,000
/// tokens in random order, compared with 600 million for mmap (one core); a loader needs far less.
/// Either way the ranks of a machine share the page cache, and the files take no memory of a
/// process.

/// Reads the ids [begin, end). Throws an io Error if the file has become shorter, a data Error
/// naming file and byte for an id that is negative or above 2^31 - 1.
void read_tokens(const InputFile& file, const TokenLayout& layout, uint64_t begin, uint64_t end,
                 std::vector<int32_t>& ids);

}  // namespace titan::datasets
