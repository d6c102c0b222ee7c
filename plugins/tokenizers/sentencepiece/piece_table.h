// Finds pieces by their text. Used by BpeEncoder for every pair of neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Whether text can become a piece of this type: not control pieces, the unknown piece and byte
/// pieces.
inline bool is_text(PieceType type) {
  return type == PieceType::normal || type == PieceType::user_defined || type == PieceType::unused;
}

/// Immutable: a hash table with open addressing over the pieces that text can become. The model
/// outlives it.
class PieceTable {
 public:
  explicit PieceTable(const ModelFile& model);

  /// The id of the piece; -1 if there is none.
  int32_t find(std::string_view text) const;

 private:
  struct Place {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  const std::vector<Piece>& pieces_;
  size_t longest_ = 0;
  std::vector<Place> places_;  // a power of two, at most half full
};

}  // namespace titan::sentencepiece
