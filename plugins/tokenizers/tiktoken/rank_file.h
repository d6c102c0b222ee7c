// Reads a .tiktoken file: on each line a token's bytes in base64, a space, and its rank, which is
// also its id. Used by the tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace titan::tiktoken {

/// Ids, also of special tokens, are below this, so that tables over all ids stay small.
inline constexpr int32_t kIdLimit = 1 << 22;

struct RankedToken {
  std::string bytes;
  int32_t rank;
};

/// The tokens in the order of the file. All bytes that occur in UTF-8 are tokens; bytes and ranks
/// are unique.
struct RankFile {
  std::vector<RankedToken> tokens;
};

/// `content`: the whole file. Throws a data Error "<name>:<line>: ..." if it is not such a file.
RankFile parse_rank_file(std::string_view content, const std::string& name);

}  // namespace titan::tiktoken
