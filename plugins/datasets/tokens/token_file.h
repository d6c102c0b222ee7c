// Reading the ids of a file of tokens at any place. Used by the datasets `megatron` and `tokens`.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/datasets/common/input_file.h"
#include "plugins/datasets/tokens/token_type.h"

namespace titan::datasets {

/// Where the ids of a file are.
struct TokenLayout {
  TokenType type = TokenType::uint16;
  uint64_t first_byte = 0;
  uint64_t num_tokens = 0;
};

/// Note [Token files are read, not mapped]: when a mapped file shrinks or a network disk fails, the
/// process ends with SIGBUS and no word; pread gives an error with a name. It costs a microsecond
/// per call: from the page cache 270 million tokens a second for documents of 1,000 tokens in
/// random order where a map gives 600 (one core), many times what a loader needs. The ranks of a
/// machine share the page cache both ways, and nothing of the files is held in a process's own
/// memory.

/// The ids [begin, end). Throws an io Error when the file has become shorter, a data Error naming
/// file and byte for an id that is negative or above 2^31 - 1.
void read_tokens(const InputFile& file, const TokenLayout& layout, uint64_t begin, uint64_t end,
                 std::vector<int32_t>& ids);

}  // namespace titan::datasets
