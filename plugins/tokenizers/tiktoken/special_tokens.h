// The special tokens of a .tiktoken file, which the file itself does not hold: a short notation for
// many of them. Used by the tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace titan::tiktoken {

struct SpecialToken {
  std::string content;
  int32_t id;
};

/// Each item stands for one token with the next free id, the first `first_id`:
///   "<|end|>"             one token
///   "<|reserved_{3..5}|>" <|reserved_3|>, <|reserved_4|>, <|reserved_5|>
///   "<|end|>=100257"      a token with this id; the next item goes on behind it
/// Throws a config Error for an empty token, a range that goes down, an id that is too large, and
/// for what stands twice.
std::vector<SpecialToken> expand_special_tokens(const std::vector<std::string>& items,
                                                int32_t first_id);

/// Llama 3.1's 256, in this notation. Llama 3 has the same ids; some were reserved ones then.
std::vector<std::string> llama3_special_tokens();

}  // namespace titan::tiktoken
