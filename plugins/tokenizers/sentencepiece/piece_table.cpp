#include "piece_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace titan::sentencepiece {
namespace {

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 32;
}

template <class T>
uint64_t load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// Hashes all bytes in words; the last word may overlap the previous one.
uint32_t hash_of(std::string_view text) {
  const char* p = text.data();
  const size_t n = text.size();
  uint64_t hash = n;
  if (n >= 8) {
    for (size_t i = 0; i + 8 < n; i += 8) hash = mixed(hash, load<uint64_t>(p + i));
    hash = mixed(hash, load<uint64_t>(p + n - 8));
  } else if (n >= 4) {
    hash = mixed(hash, load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4));
  } else if (n > 0) {
    hash = mixed(hash,
                 load<uint8_t>(p) << 16 | load<uint8_t>(p + n / 2) << 8 | load<uint8_t>(p + n - 1));
  }
  return static_cast<uint32_t>(hash * 0xD6E8FEB86659FD93u >> 32);
}

}  // namespace

PieceTable::PieceTable(const ModelFile& model)
    : pieces_(model.pieces), places_(std::bit_ceil(2 * model.pieces.size())) {
  for (size_t id = 0; id < pieces_.size(); ++id) {
    if (!is_text(pieces_[id].type)) continue;
    const std::string_view text = pieces_[id].text;
    longest_ = std::max(longest_, text.size());
    const uint32_t hash = hash_of(text);
    size_t i = hash;
    while (places_[i & (places_.size() - 1)].id >= 0) ++i;
    places_[i & (places_.size() - 1)] = {hash, static_cast<int32_t>(id)};
  }
}

int32_t PieceTable::find(std::string_view text) const {
  if (text.size() > longest_) return -1;
  const uint32_t hash = hash_of(text);
  for (size_t i = hash;; ++i) {
    const Place& place = places_[i & (places_.size() - 1)];
    if (place.id < 0) return -1;
    if (place.hash == hash && pieces_[static_cast<size_t>(place.id)].text == text) return place.id;
  }
}

}  // namespace titan::sentencepiece
