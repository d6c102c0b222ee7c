// Expands the short notation for special tokens, which a .tiktoken file does not hold. Used by the
// tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace titan::tiktoken {

struct SpecialToken {
  std::string content;
  int32_t id;
};

/// Each item gives one or more tokens with the next ids, starting at `first_id`:
///   "<|end|>"             one token
///   "<|reserved_{3..5}|>" <|reserved_3|>, <|reserved_4|>, <|reserved_5|>
///   "<|end|>=100257"      a token with this id; the next item continues after it
/// Throws a config Error for an empty token, a descending range, an id that is too large, and
/// repeated tokens or ids.
std::vector<SpecialToken> expand_special_tokens(const std::vector<std::string>& items,
                                                int32_t first_id);

/// Llama 3.1's 256, in this notation. Llama 3 has the same ids, some of them still reserved.
std::vector<std::string> llama3_special_tokens();

}  // namespace titan::tiktoken
