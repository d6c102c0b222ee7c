// Finds where text can be cut without changing its byte-pair encoding. Used by the BPE encoder,
// which caches the ids of the text between two cuts.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Note [Cuts]. Every merged symbol is a piece and a substring of the text. So no merge crosses the
/// place between two characters that are adjacent in no piece. The order of merges (highest score,
/// then leftmost) within each side does not depend on the other side. Hence the ids of the whole
/// text are the ids of both sides, concatenated. In most models pieces have U+2581 only at the
/// front, so cuts are between words and around punctuation.
///
/// One rule depends on the whole text: a piece of type unused is split again into the two symbols
/// of the last place in the text where it could have been merged. The result is the same for every
/// place unless the piece can be merged from different pairs; `needs_whole_text` reports that.
class Boundaries {
 public:
  explicit Boundaries(const ModelFile& model);

  /// Whether two characters are adjacent in a piece.
  bool may_join(char32_t left, char32_t right) const {
    const size_t l = small(left), r = small(right);
    return l < kSmall && r < kSmall ? near_[l * kSmall + r] : find(left, right);
  }
  /// Whether a cut could change the ids.
  bool needs_whole_text() const { return needs_whole_text_; }

 private:
  static constexpr size_t kSmall = 129;  // ASCII and U+2581

  static size_t small(char32_t c) { return c == 0x2581 ? 128 : c < 128 ? c : kSmall; }
  bool find(char32_t left, char32_t right) const;
  size_t first_place(uint64_t pair) const;
  void add(char32_t left, char32_t right);

  bool needs_whole_text_;
  std::bitset<kSmall * kSmall> near_;
  std::vector<uint64_t> far_;  // all other pairs: open addressing, 0 is free
  size_t num_far_ = 0;
};

}  // namespace titan::sentencepiece
