// Byte-pair encoding of SentencePiece models, by the texts and scores of pieces. Used by the
// tokenizer for models of type bpe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../common/word_cache.h"
#include "boundaries.h"
#include "id_writer.h"
#include "model_file.h"
#include "piece_table.h"
#include "piece_trie.h"

namespace titan::sentencepiece {

/// Immutable after construction; each thread brings its own scratch. The constructor's arguments
/// outlive it.
///
/// Text is a row of symbols: user-defined pieces, which never merge, and characters. The neighbours
/// whose concatenation is the piece of the highest score merge, the leftmost of equals, until no
/// two form a piece. O(n log n): symbols are a linked list, pairs a heap. The ids of short parts of
/// the text are cached; see Note [Cuts] in boundaries.h.
class BpeEncoder {
 public:
  /// Buffers and caches of one thread: about 6 MB.
  struct Scratch {
    struct Symbol {
      uint32_t start, length;  // length 0: merged into the previous one
      uint32_t previous, next;
      bool frozen;
    };
    struct Pair {
      float score;
      uint32_t left, right, length;
    };
    bpe::WordCache<16, 11, 15> short_words;
    bpe::WordCache<48, 19, 13> long_words;  // indented words are long: each space has 3 bytes
    std::vector<Symbol> symbols;
    std::vector<Pair> heap;
    std::unordered_map<std::string_view, uint32_t> cuts;  // of unused pieces: length of the left
    std::vector<std::string_view> stack;
    std::vector<int32_t> ids;
  };

  BpeEncoder(const ModelFile& model, const PieceTrie& user_defined);

  /// Writes the ids of normalised text.
  void encode(std::string_view text, Scratch& scratch, IdWriter& writer) const;

 private:
  void encode_part(std::string_view text, Scratch& scratch, IdWriter& writer) const;
  void merge(std::string_view text, Scratch& scratch, IdWriter& writer) const;
  void split_symbols(std::string_view text, Scratch& scratch) const;
  float score(std::string_view text, const Scratch::Symbol& left, const Scratch::Symbol& right,
              Scratch& scratch) const;
  void merge_by_scan(std::string_view text, Scratch& scratch) const;
  void merge_by_heap(std::string_view text, Scratch& scratch) const;
  void write(std::string_view symbol, Scratch& scratch, IdWriter& writer) const;

  const ModelFile& model_;
  const PieceTrie& user_defined_;
  PieceTable table_;
  Boundaries boundaries_;
};

}  // namespace titan::sentencepiece
