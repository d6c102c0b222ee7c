// Byte-pair encoding of one piece of text: the model of tokenizer.json. Used by the tokenizer for
// every piece that the pre-tokenizer gives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_view.h"
#include "merge_table.h"
#include "vocabulary.h"
#include "word_cache.h"

namespace titan::huggingface {

/// Immutable after construction; each thread brings its own scratch.
///
/// A piece starts as one id per byte; the neighbours with the lowest rank merge first, the leftmost
/// of equals, until no pair has a merge. Bytes without a token become unk_token (a run of them one,
/// with fuse_unk).
class Bpe {
 public:
  /// Buffers and caches of one thread: about 5 MB.
  struct Scratch {
    WordCache<16, 11, 15> short_words;
    WordCache<48, 19, 11> long_words;
    std::vector<int32_t> ids;
    std::vector<uint32_t> ranks;
    std::vector<uint32_t> previous;
    std::vector<uint32_t> next;
    std::vector<uint64_t> heap;
  };

  /// `model`: the component of tokenizer.json; `vocabulary`: its vocab. Throws a data Error for
  /// what is wrong or not supported.
  Bpe(const JsonView& model, const Vocabulary& vocabulary);

  /// The ids of `piece`, which is not empty; valid until the scratch is used again.
  std::span<const int32_t> encode(std::string_view piece, Scratch& scratch) const;

 private:
  void read_merges(const JsonView& merges, const Vocabulary& vocabulary);
  void read_bytes(const JsonView& model, const Vocabulary& vocabulary);
  void merge(std::string_view piece, Scratch& scratch) const;
  void merge_by_scan(Scratch& scratch) const;
  void merge_by_heap(Scratch& scratch) const;

  std::array<int32_t, 256> id_of_byte_{};  // -1: none
  MergeTable merges_;
  std::optional<int32_t> unknown_;
  bool fuse_unknown_ = false;
  std::unordered_map<std::string, int32_t> whole_;  // bytes to id; filled with ignore_merges only
};

}  // namespace titan::huggingface
