// Byte-pair encoding of a piece of text. Used by the tokenizer plugins through IdWriter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "joinable_symbols.h"
#include "merge_table.h"
#include "symbol_table.h"

namespace titan::bpe {

/// Pieces that are encoded as one id regardless of the merges; looked up by their bytes.
class WholePieces {
 public:
  void add(std::string piece, int32_t id);
  /// -1: none.
  int32_t find(std::string_view piece) const;
  bool empty() const { return ids_.empty(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  size_t longest_ = 0;
};

/// Immutable after construction; each thread brings its own scratch, and writes ids by an IdWriter.
///
/// A piece starts as one symbol per character or byte; the neighbours with the lowest rank merge
/// first, the leftmost of equals, until no pair has a merge. A long piece (a whole document without
/// a pre-tokenizer) is merged in parts: it may be cut between two symbols that are adjacent in no
/// token, because no merge can cross such a cut.
class Engine {
 public:
  /// `rules`: in order of rank; of two rules for one pair the later one counts.
  Engine(SymbolTable symbols, std::span<const MergeRule> rules, WholePieces whole = {});

 private:
  friend class IdWriter;

  SymbolTable symbols_;
  MergeTable merges_;
  JoinableSymbols joinable_;
  WholePieces whole_;
};

}  // namespace titan::bpe
