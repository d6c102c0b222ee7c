// Where text can be cut without changing what byte-pair encoding makes of it. Used by the BPE
// encoder, which remembers the ids of what lies between two cuts.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Note [Cuts]. Every symbol that merging makes is a piece and a part of the text. So between two
/// neighbouring characters that stand side by side in no piece, nothing ever merges: what is left
/// of them and what is right of them never see each other. The order of merges (highest score, then
/// leftmost) is the same within each side whether or not the other is there. Hence the ids of the
/// whole are the ids of the sides, one after the other. In most models a piece has U+2581 at its
/// front only, and the cuts are those between words and around punctuation.
///
/// One thing does see the whole text: a piece of type unused is taken apart again into the two
/// symbols of the last place in the text where it could have been merged from. That is the same for
/// every place unless it can be merged from different pairs; `needs_whole_text` looks for that.
class Boundaries {
 public:
  explicit Boundaries(const ModelFile& model);

  /// Whether two characters stand side by side in a piece.
  bool may_join(char32_t left, char32_t right) const {
    const size_t l = small(left), r = small(right);
    return l < kSmall && r < kSmall ? near_[l * kSmall + r] : find(left, right);
  }
  /// Whether a cut could change the ids after all.
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
