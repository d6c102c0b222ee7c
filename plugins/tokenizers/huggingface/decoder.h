// The decoder of tokenizer.json: from ids back to text. null, ByteLevel, Replace, ByteFallback,
// Fuse, Strip, Metaspace, BPEDecoder, Sequence. Used by the tokenizer's decode().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder_step.h"
#include "json_parts.h"
#include "json_view.h"
#include "vocabulary.h"

namespace titan::huggingface {

/// Immutable after construction.
class Decoder {
 public:
  /// `view`: the component, nullopt if it is null: then the tokens are joined with spaces. Throws a
  /// data Error.
  Decoder(const std::optional<JsonView>& view, const Vocabulary& vocabulary,
          const std::vector<AddedToken>& added_tokens);

  /// The text of `ids` without special tokens; bytes that form no character become U+FFFD. An id
  /// below the largest that belongs to no token gives no text, as in the reference library. Throws
  /// a data Error for an id out of range.
  std::string decode(std::span<const int32_t> ids) const;
  int64_t num_ids() const { return static_cast<int64_t>(texts_.size()); }

 private:
  void read_step(const JsonView& view);
  const std::string& text_of(std::span<const int32_t> ids, size_t position) const;

  // ByteLevel alone, the usual case: bytes are only concatenated
  bool is_byte_level_ = false;
  bool joins_with_spaces_ = false;
  std::vector<std::string> texts_;  // by id; bytes if is_byte_level_
  std::vector<bool> is_left_out_;   // special tokens, and ids that belong to no token
  std::vector<std::unique_ptr<DecoderStep>> steps_;
};

}  // namespace titan::huggingface
