// Writes the ids of a document's pieces, in order, by an Engine and caches of words. Used by the
// tokenizer plugins for every piece.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine.h"
#include "word_cache.h"

namespace titan::bpe {

/// Writer for one document, used by one thread.
///
/// The word caches exceed the CPU's fast caches, so most of a look-up is memory latency. Therefore
/// short pieces are prefetched and looked up a few pieces later.
class IdWriter {
 private:
  using ShortWords = WordCache<16, 11, 15>;
  using LongWords = WordCache<48, 19, 13>;
  struct Waiting {
    ShortWords::Key key;  // length 0: `id` is used instead
    int32_t id = -1;
  };
  static constexpr size_t kMaxWaiting = 8;

 public:
  /// Buffers and caches of one thread: about 6 MB. Reused for all documents.
  struct Scratch {
    ShortWords short_words;
    LongWords long_words;
    std::array<Waiting, kMaxWaiting> waiting;
    std::vector<int32_t> symbols;       // of the present piece
    std::vector<int32_t> part_symbols;  // of a long piece, up to the next cut
    std::vector<uint32_t> ranks;
    std::vector<uint32_t> previous;
    std::vector<uint32_t> next;
    std::vector<uint64_t> heap;
  };

  IdWriter(const Engine& engine, Scratch& scratch, std::vector<int32_t>& ids)
      : engine_(engine), scratch_(scratch), ids_(ids) {}

  /// Writes the ids of `text`, which is not empty and, unless symbols are bytes, valid UTF-8.
  void piece(std::string_view text);
  /// Writes this id.
  void token(int32_t id);
  /// Call at the end: ids may be missing before.
  void finish();

 private:
  class Parts;

  /// Returns a free entry; if there is none, writes the oldest one first.
  Waiting& next_waiting();
  void wait_for(std::string_view short_piece);
  void write(const Waiting& waiting);
  template <class Cache>
  void write_through(Cache& cache, const typename Cache::Key& key);
  void write_uncached(std::string_view piece);
  /// Merges scratch.symbols and appends the result.
  void merge();

  const Engine& engine_;
  Scratch& scratch_;
  std::vector<int32_t>& ids_;
  size_t first_waiting_ = 0;
  size_t num_waiting_ = 0;
};

}  // namespace titan::bpe
