// Index of a Megatron data set: the bytes of the .bin file of each document. Used by the dataset
// `megatron`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plugins/datasets/tokens/token_type.h"

namespace titan::datasets {

/// An .idx file, checked against its .bin file.
///
///   bytes     type    content
///   0         9 bytes "MMIDIDX" 00 00
///   9         u64     version, 1
///   17        u8      type of the ids: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16
///   18        u64     S, number of sequences
///   26        u64     D, number of documents + 1
///   34        i32[S]  ids of each sequence
///   34 + 4 S  i64[S]  byte of the .bin file at which it starts
///   34 + 12 S i64[D]  the sequence with which each document starts; the last is S
///   ...       i8[S]   modes; may be missing, not used
///
/// Little-endian, arrays of any alignment. The index is not kept in memory: document() reads the
/// entries from the file (Note [Token files are read, not mapped] in token_file.h).
class MegatronIndex {
 public:
  /// Fills `buffer` with the bytes [begin, end) of the index, or throws.
  using Read = std::function<void(uint64_t begin, uint64_t end, char* buffer)>;
  /// Bytes of the .bin file.
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  /// Reads the whole index once. Throws a data Error with `name` and the byte if sizes differ from
  /// the header's or from `num_bin_bytes`, if the sequences do not cover the .bin file in order
  /// without gaps, if the documents do not cover the sequences in order, or if ids have a
  /// floating-point type.
  MegatronIndex(Read read, uint64_t num_bytes, uint64_t num_bin_bytes, std::string name);

  TokenType type() const { return type_; }
  int64_t num_sequences() const { return static_cast<int64_t>(num_sequences_); }
  int64_t num_documents() const { return static_cast<int64_t>(num_documents_); }
  /// [any thread] The bytes of all sequences of document `index` in [0, num_documents()), which are
  /// adjacent; empty for an empty document.
  Range document(int64_t index) const;

 private:
  void read_header(uint64_t num_bytes);
  void check_sequences() const;
  void check_documents() const;
  uint64_t lengths_at() const { return 34; }
  uint64_t starts_at() const { return lengths_at() + 4 * num_sequences_; }
  uint64_t documents_at() const { return lengths_at() + 12 * num_sequences_; }
  /// The byte at which sequence `sequence` starts; at S the end of the .bin file.
  uint64_t sequence_start(uint64_t sequence) const;

  Read read_;
  uint64_t num_bin_bytes_;
  std::string name_;
  TokenType type_ = TokenType::uint16;
  uint64_t num_sequences_ = 0;
  uint64_t num_documents_ = 0;
};

/// An index in memory. `bin_size` = bytes of the .bin file.
MegatronIndex parse_megatron_index(std::string bytes, uint64_t bin_size, std::string name);

}  // namespace titan::datasets
