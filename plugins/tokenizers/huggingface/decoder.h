// The decoder of tokenizer.json: from ids back to text. ByteLevel, alone or in a Sequence. Used by
// the tokenizer's decode().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "added_tokens.h"
#include "json_view.h"
#include "vocabulary.h"

namespace titan::huggingface {

/// Immutable after construction.
class Decoder {
 public:
  /// `view`: the component, or nothing when it is null. Throws a data Error if it is not ByteLevel.
  Decoder(const std::optional<JsonView>& view, const JsonView& document,
          const Vocabulary& vocabulary, const std::vector<AddedToken>& added_tokens);

  /// The text of `ids` without special tokens; bytes that form no character become U+FFFD.
  std::string decode(std::span<const int32_t> ids) const;
  int64_t num_ids() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::vector<std::string> bytes_;  // by id; empty for special tokens
};

}  // namespace titan::huggingface
