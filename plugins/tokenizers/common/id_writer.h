// Writes the ids of a document's pieces, in order, by an Engine and a cache of words. Used by the
// tokenizer plugins for every piece that their patterns cut.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine.h"
#include "word_cache.h"

namespace titan::bpe {

/// One document's writer, of one thread.
///
/// The cache of words is larger than the CPU's nearer caches, and most of a look-up is
/// waiting for memory. So a short piece is looked up only when some more have come: by then its
/// place is there.
class IdWriter {
 private:
  using ShortWords = WordCache<16, 11, 15>;
  using LongWords = WordCache<48, 19, 13>;
  struct Waiting {
    ShortWords::Key key;  // of length 0: the id counts
    int32_t id = -1;
  };
  static constexpr size_t kMaxWaiting = 8;

 public:
  /// Buffers and caches of one thread: about 6 MB. Reused from document to document.
  struct Scratch {
    ShortWords short_words;
    LongWords long_words;
    std::array<Waiting, kMaxWaiting> waiting;
    std::vector<int32_t> symbols;       // of the piece that is being merged
    std::vector<int32_t> part_symbols;  // of a long piece, up to where it can be cut
    std::vector<uint32_t> ranks;
    std::vector<uint32_t> previous;
    std::vector<uint32_t> next;
    std::vector<uint64_t> heap;
  };

  IdWriter(const Engine& engine, Scratch& scratch, std::vector<int32_t>& ids)
      : engine_(engine), scratch_(scratch), ids_(ids) {}

  /// The ids of `text`, which is not empty and, but for byte symbols, valid UTF-8.
  void piece(std::string_view text);
  /// This id.
  void token(int32_t id);
  /// To be called at the end: until then ids may be missing.
  void finish();

 private:
  class Parts;

  /// Makes room and gives it; what waited longest is written.
  Waiting& next_waiting();
  void wait_for(std::string_view short_piece);
  void write(const Waiting& waiting);
  template <class Cache>
  void write_through(Cache& cache, const typename Cache::Key& key);
  void write_uncached(std::string_view piece);
  /// Merges scratch.symbols and appends what comes out.
  void merge();

  const Engine& engine_;
  Scratch& scratch_;
  std::vector<int32_t>& ids_;
  size_t first_waiting_ = 0;
  size_t num_waiting_ = 0;
};

}  // namespace titan::bpe
