#include "boundaries.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "../common/unicode.h"

#include "piece_table.h"

namespace titan::sentencepiece {
namespace {

using bpe::decode_utf8;

size_t first_length(std::string_view text) {
  return static_cast<size_t>(decode_utf8(text.data()).length);
}

/// Whether a piece of type unused can be merged from different pairs of symbols.
bool has_ambiguous_unused(const ModelFile& model) {
  const auto is_long_unused = [](const Piece& piece) {
    return piece.type == PieceType::unused && first_length(piece.text) < piece.text.size();
  };
  if (std::none_of(model.pieces.begin(), model.pieces.end(), is_long_unused)) return false;
  std::vector<const Piece*> by_length;
  for (const Piece& piece : model.pieces)
    if (is_text(piece.type)) by_length.push_back(&piece);
  std::sort(by_length.begin(), by_length.end(),
            [](const Piece* a, const Piece* b) { return a->text.size() < b->text.size(); });
  std::unordered_set<std::string_view> merged;  // pieces of several characters that merges can make
  const auto is_symbol = [&](std::string_view text) {
    return first_length(text) == text.size() || merged.contains(text);
  };
  for (const Piece* piece : by_length) {
    const std::string_view text = piece->text;
    int num_pairs = 0;
    for (size_t cut = first_length(text); cut < text.size(); cut += first_length(text.substr(cut)))
      if (is_symbol(text.substr(0, cut)) && is_symbol(text.substr(cut))) ++num_pairs;
    if (num_pairs > 0) merged.insert(text);
    if (num_pairs > 1 && piece->type == PieceType::unused) return true;
  }
  return false;
}

uint64_t key_of(char32_t left, char32_t right) {
  return uint64_t{left} << 32 | right;
}

}  // namespace

Boundaries::Boundaries(const ModelFile& model)
    : needs_whole_text_(has_ambiguous_unused(model)), far_(1024) {
  for (const Piece& piece : model.pieces) {
    if (!is_text(piece.type)) continue;
    auto left = decode_utf8(piece.text.data());
    for (size_t i = static_cast<size_t>(left.length); i < piece.text.size();) {
      const auto right = decode_utf8(piece.text.data() + i);
      add(left.value, right.value);
      left = right;
      i += static_cast<size_t>(right.length);
    }
  }
}

void Boundaries::add(char32_t left, char32_t right) {
  const size_t l = small(left), r = small(right);
  if (l < kSmall && r < kSmall) {
    near_.set(l * kSmall + r);
    return;
  }
  if (find(left, right)) return;
  if (++num_far_ * 2 > far_.size()) {
    std::vector<uint64_t> old(2 * far_.size());
    old.swap(far_);
    for (const uint64_t pair : old)
      if (pair != 0) far_[first_place(pair)] = pair;
  }
  const uint64_t pair = key_of(left, right);
  far_[first_place(pair)] = pair;
}

// The pair's slot, or the free one where it would be put.
size_t Boundaries::first_place(uint64_t pair) const {
  size_t i = pair * 0x9E3779B97F4A7C15u >> 32;
  while (far_[i & (far_.size() - 1)] != 0 && far_[i & (far_.size() - 1)] != pair) ++i;
  return i & (far_.size() - 1);
}

bool Boundaries::find(char32_t left, char32_t right) const {
  const uint64_t pair = key_of(left, right);
  return far_[first_place(pair)] == pair;
}

}  // namespace titan::sentencepiece
