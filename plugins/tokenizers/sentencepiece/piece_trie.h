// A prefix tree over the bytes of pieces. Used for user-defined pieces, which are matched before
// all else, and by unigram models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::sentencepiece {

/// Immutable: a double array. The child of a node by a byte is the cell `base + byte` if the node
/// is that cell's parent, so a step is one memory access.
class PieceTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = 0;  // the root is no node's child

  /// An empty trie.
  PieceTrie() : PieceTrie(std::vector<std::pair<std::string_view, int32_t>>()) {}
  /// Texts with their ids; texts differ and are not empty.
  explicit PieceTrie(std::vector<std::pair<std::string_view, int32_t>> pieces);

  /// Whether a text of the trie begins with `byte`.
  bool begins(uint8_t byte) const { return child(kRoot, byte) != kNone; }
  /// The node below `node` by `byte`; kNone if there is none.
  uint32_t child(uint32_t node, uint8_t byte) const {
    const uint32_t cell = cells_[node].base + byte;
    return cells_[cell].parent == node ? cell : kNone;
  }
  /// The id of the text that ends at `node`; -1: none.
  int32_t id(uint32_t node) const { return cells_[node].id; }
  /// Length and id of the longest text of the trie that is a prefix of `text`; 0 and -1 if there is
  /// none.
  std::pair<size_t, int32_t> longest(std::string_view text) const;

 private:
  static constexpr uint32_t kFree = ~uint32_t{0};

  struct Cell {
    uint32_t base = 0;
    uint32_t parent = kFree;
    int32_t id = -1;
  };

  uint32_t place(const std::vector<uint8_t>& bytes);

  std::vector<Cell> cells_;
  size_t search_from_ = 1;  // while building: nearly all earlier cells are taken
};

}  // namespace titan::sentencepiece
