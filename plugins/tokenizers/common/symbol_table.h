// Initial symbols of a piece before merging: one id per byte or per character. Used by Engine.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "unicode.h"

namespace titan::bpe {

/// The ids of single bytes or single characters. Filled while loading, then only read.
class SymbolMap {
 public:
  /// `symbol`: a byte's value or a code point. The first id of a symbol wins.
  void put(char32_t symbol, int32_t id);
  /// -1: none.
  int32_t find(char32_t symbol) const {
    const std::unique_ptr<Page>& page = pages_[symbol >> 8];
    return page ? (*page)[symbol & 0xFF] : -1;
  }

 private:
  using Page = std::array<int32_t, 256>;
  std::vector<std::unique_ptr<Page>> pages_{0x110000 >> 8};
};

/// Options of the split into symbols.
struct SymbolOptions {
  enum class Unit { byte, character };
  Unit unit = Unit::byte;
  std::optional<int32_t> unknown;          ///< id of units without an id
  bool fuse_unknown = false;               ///< a run of them is one symbol
  std::array<int32_t, 256> byte_fallback;  ///< ids for a missing character's bytes; -1: none
  /// Units at the start or the end of a piece have their own ids: [is last][is not first].
  bool has_affixes = false;

  SymbolOptions() { byte_fallback.fill(-1); }
};

class SymbolTable {
 public:
  /// `maps`: one for all units, or four with has_affixes: start and not end, neither, start and
  /// end, end only.
  SymbolTable(const SymbolOptions& options, std::vector<SymbolMap> maps, std::vector<int32_t> ids)
      : options_(options), maps_(std::move(maps)), ids_(std::move(ids)) {}

  /// Every id that a symbol may have.
  const std::vector<int32_t>& ids() const { return ids_; }

  /// Calls `give(id, begin, end, plain)` for each symbol of `piece`. Plain: the symbol encodes the
  /// bytes from begin to end, at any position in a piece. A unit without id, fallback and unknown
  /// id is skipped.
  template <class Give>
  void for_each(std::string_view piece, const Give& give) const {
    if (options_.unit == SymbolOptions::Unit::byte) {
      each_unit(piece, give, [](const char* p) {
        return CodePoint{static_cast<unsigned char>(*p), 1};
      });
    } else {
      each_unit(piece, give, [](const char* p) { return decode_utf8(p); });
    }
  }

 private:
  template <class Give, class Read>
  void each_unit(std::string_view piece, const Give& give, const Read& read) const {
    const SymbolMap* map = maps_.data();
    bool pending = false;  // an unknown symbol not given yet
    for (size_t at = 0; at < piece.size();) {
      const CodePoint unit = read(piece.data() + at);
      const size_t end = at + static_cast<size_t>(unit.length);
      if (options_.has_affixes) map = &maps_[(at > 0 ? 1u : 0u) + (end == piece.size() ? 2u : 0u)];
      const int32_t id = map->find(unit.value);
      if (id >= 0) {
        if (pending) give(*options_.unknown, at, at, false);
        pending = false;
        give(id, at, end, !options_.has_affixes);
      } else if (falls_back(piece.substr(at, end - at))) {
        // an unknown symbol before stays pending, as in the reference
        for (size_t i = at; i < end; ++i) {
          give(options_.byte_fallback[static_cast<unsigned char>(piece[i])], at, end, false);
        }
      } else if (options_.unknown) {
        if (pending && !options_.fuse_unknown) give(*options_.unknown, at, at, false);
        pending = true;
      }
      at = end;
    }
    if (pending) give(*options_.unknown, piece.size(), piece.size(), false);
  }

  bool falls_back(std::string_view bytes) const {
    for (char c : bytes) {
      if (options_.byte_fallback[static_cast<unsigned char>(c)] < 0) return false;
    }
    return true;
  }

  SymbolOptions options_;
  std::vector<SymbolMap> maps_;
  std::vector<int32_t> ids_;
};

}  // namespace titan::bpe
