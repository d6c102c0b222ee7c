#include "piece_trie.h"

#include <algorithm>

namespace titan::sentencepiece {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, int32_t>> pieces) : cells_(257) {
  std::sort(pieces.begin(), pieces.end());
  // Level by level: the texts below a node are neighbours.
  struct Range {
    uint32_t node;
    size_t begin, end;
  };
  std::vector<Range> level = {{kRoot, 0, pieces.size()}};
  for (size_t depth = 0; !level.empty(); ++depth) {
    std::vector<Range> below;
    for (auto [node, begin, end] : level) {
      if (begin < end && pieces[begin].first.size() == depth)
        cells_[node].id = pieces[begin++].second;
      if (begin == end) continue;
      std::vector<uint8_t> bytes;
      const size_t first = below.size();
      while (begin < end) {
        const auto byte = static_cast<uint8_t>(pieces[begin].first[depth]);
        size_t next = begin + 1;
        while (next < end && static_cast<uint8_t>(pieces[next].first[depth]) == byte) ++next;
        bytes.push_back(byte);
        below.push_back({0, begin, next});
        begin = next;
      }
      const uint32_t base = place(bytes);
      cells_[node].base = base;
      for (size_t i = 0; i < bytes.size(); ++i) {
        below[first + i].node = base + bytes[i];
        cells_[base + bytes[i]].parent = node;
      }
    }
    level = std::move(below);
  }
}

// A base whose cells for these bytes (ascending) are all free. Grows the cells if needed.
uint32_t PieceTrie::place(const std::vector<uint8_t>& bytes) {
  size_t num_taken = 0;
  for (size_t cell = std::max(search_from_, size_t{bytes[0]} + 1);; ++cell) {
    if (cell + 513 > cells_.size()) cells_.resize(2 * cells_.size() + 513);
    if (cells_[cell].parent != kFree) {
      ++num_taken;
      continue;
    }
    const size_t base = cell - bytes[0];
    if (!std::all_of(bytes.begin(), bytes.end(),
                     [&](uint8_t byte) { return cells_[base + byte].parent == kFree; }))
      continue;
    if (num_taken * 20 >= (cell - search_from_) * 19) search_from_ = cell;
    return static_cast<uint32_t>(base);
  }
}

std::pair<size_t, int32_t> PieceTrie::longest(std::string_view text) const {
  std::pair<size_t, int32_t> found{0, -1};
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<uint8_t>(text[i]));
    if (node == kNone) break;
    if (id(node) >= 0) found = {i + 1, id(node)};
  }
  return found;
}

}  // namespace titan::sentencepiece
