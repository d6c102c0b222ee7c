// See megatron_index.h.
#include "plugins/datasets/megatron/megatron_index.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/error.h>

namespace titan::datasets {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kHeaderBytes = 34;
constexpr uint64_t kBlock = uint64_t{1} << 15;  // entries that are checked at once

template <class T>
T load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// For messages about a broken file: -1 instead of 18446744073709551615.
int64_t as_signed(uint64_t number) {
  return static_cast<int64_t>(number);
}

TokenType type_of(uint8_t code, const std::string& name) {
  switch (code) {
    case 1:
      return TokenType::uint8;
    case 2:
      return TokenType::int8;
    case 3:
      return TokenType::int16;
    case 4:
      return TokenType::int32;
    case 5:
      return TokenType::int64;
    case 6:
    case 7:
      fail(ErrorKind::data, "'", name, "' says at byte 17 that the .bin file holds ",
           code == 6 ? "float64" : "float32", " (type ", int{code}, "), which are not token ids");
    case 8:
      return TokenType::uint16;
    default:
      fail(ErrorKind::data, "'", name, "' has the type ", int{code},
           " at byte 17; known are 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16");
  }
}

/// Calls `visit(i, entries)` for blocks of `count` entries of T from byte `offset` on.
template <class T, class Visit>
void for_each_block(const MegatronIndex::Read& read, uint64_t offset, uint64_t count, Visit visit) {
  std::vector<T> block;
  for (uint64_t first = 0; first < count; first += kBlock) {
    block.resize(std::min(kBlock, count - first));
    const uint64_t begin = offset + first * sizeof(T);
    read(begin, begin + block.size() * sizeof(T), reinterpret_cast<char*>(block.data()));
    visit(first, block);
  }
}

}  // namespace

MegatronIndex::MegatronIndex(Read read, uint64_t num_bytes, uint64_t num_bin_bytes,
                             std::string name)
    : read_(std::move(read)), num_bin_bytes_(num_bin_bytes), name_(std::move(name)) {
  read_header(num_bytes);
  check_sequences();
  check_documents();
}

void MegatronIndex::read_header(uint64_t num_bytes) {
  TITAN_CHECK(num_bytes >= kHeaderBytes, data, "'", name_, "' has ", num_bytes,
              " bytes, but the header of a Megatron index has ", kHeaderBytes);
  char header[kHeaderBytes];
  read_(0, kHeaderBytes, header);
  TITAN_CHECK(std::string_view(header, kMagic.size()) == kMagic, data, "'", name_,
              "' does not start with MMIDIDX: it is not the index of a Megatron data set");
  const auto version = load<uint64_t>(header + 9);
  TITAN_CHECK(version == 1, data, "'", name_, "' has version ", as_signed(version),
              " at byte 9; only version 1 is known");
  type_ = type_of(static_cast<uint8_t>(header[17]), name_);
  num_sequences_ = load<uint64_t>(header + 18);
  const auto num_entries = load<uint64_t>(header + 26);
  // The first two conditions keep the sum below from overflowing.
  const uint64_t content = num_bytes - kHeaderBytes;
  const bool may_fit = num_sequences_ <= content / 12 && num_entries <= content / 8;
  const uint64_t expected = may_fit ? 12 * num_sequences_ + 8 * num_entries : 0;
  TITAN_CHECK(may_fit && (content == expected || content == expected + num_sequences_), data, "'",
              name_, "' has ", num_bytes, " bytes, but its header counts ",
              as_signed(num_sequences_), " sequences (byte 18) and ", as_signed(num_entries),
              " document entries (byte 26); is the copy complete?");
  TITAN_CHECK(num_entries >= 2 && num_sequences_ >= 1, data, "'", name_, "' holds ", num_sequences_,
              " sequences (byte 18) and ", num_entries, " document entries (byte 26): no document");
  num_documents_ = num_entries - 1;
}

void MegatronIndex::check_sequences() const {
  const uint64_t width = width_of(type_);
  std::vector<char> buffer;
  uint64_t expected = 0;
  for_each_block<int32_t>(
      read_, lengths_at(), num_sequences_, [&](uint64_t first, const auto& lengths) {
        buffer.resize(lengths.size() * sizeof(int64_t));
        const uint64_t begin = starts_at() + first * sizeof(int64_t);
        read_(begin, begin + buffer.size(), buffer.data());
        for (size_t i = 0; i < lengths.size(); ++i) {
          const uint64_t sequence = first + i;
          TITAN_CHECK(lengths[i] >= 0, data, "'", name_, "' gives sequence ", sequence,
                      " the length ", lengths[i], " at byte ", lengths_at() + 4 * sequence);
          const auto start = load<uint64_t>(buffer.data() + i * sizeof(int64_t));
          TITAN_CHECK(start == expected, data, "'", name_, "' says that sequence ", sequence,
                      " starts at byte ", as_signed(start),
                      " of the .bin file, but the previous one ends at byte ", expected, " (byte ",
                      starts_at() + 8 * sequence, ")");
          expected += static_cast<uint64_t>(lengths[i]) * width;
        }
      });
  TITAN_CHECK(expected == num_bin_bytes_, data, "the .bin file of '", name_, "' has ",
              num_bin_bytes_, " bytes, but its sequences of ", name_of(type_), " end at byte ",
              expected, "; is the copy complete, and do the two files belong together?");
}

void MegatronIndex::check_documents() const {
  uint64_t last = 0;
  for_each_block<int64_t>(
      read_, documents_at(), num_documents_ + 1, [&](uint64_t first, const auto& entries) {
        for (size_t i = 0; i < entries.size(); ++i) {
          const uint64_t entry = first + i;
          const auto sequence = static_cast<uint64_t>(entries[i]);
          const uint64_t lowest = entry == num_documents_ ? num_sequences_ : last;
          const uint64_t highest = entry == 0 ? 0 : num_sequences_;
          TITAN_CHECK(sequence >= lowest && sequence <= highest, data, "'", name_, "' has ",
                      entries[i], " at byte ", documents_at() + 8 * entry,
                      " as the first sequence of document ", entry, " of ", num_documents_,
                      "; it must be from ", lowest, " to ", highest);
          last = sequence;
        }
      });
}

uint64_t MegatronIndex::sequence_start(uint64_t sequence) const {
  if (sequence == num_sequences_) return num_bin_bytes_;
  char bytes[sizeof(uint64_t)];
  const uint64_t at = starts_at() + sequence * sizeof(uint64_t);
  read_(at, at + sizeof(bytes), bytes);
  return load<uint64_t>(bytes);
}

MegatronIndex::Range MegatronIndex::document(int64_t index) const {
  const auto document = static_cast<uint64_t>(index);
  TITAN_ASSERT(document < num_documents_, "document ", index, " of ", num_documents_);
  char entries[2 * sizeof(uint64_t)];
  const uint64_t at = documents_at() + document * sizeof(uint64_t);
  read_(at, at + sizeof(entries), entries);
  const auto first = load<uint64_t>(entries);
  const auto behind = load<uint64_t>(entries + sizeof(uint64_t));
  const bool is_known = first <= behind && behind <= num_sequences_;
  const Range range = is_known ? Range{sequence_start(first), sequence_start(behind)} : Range{};
  TITAN_CHECK(is_known && range.begin <= range.end && range.end <= num_bin_bytes_ &&
                  (range.end - range.begin) % width_of(type_) == 0,
              io, "'", name_, "' has changed since the data set was opened (byte ", at, ")");
  return range;
}

MegatronIndex parse_megatron_index(std::string bytes, uint64_t bin_size, std::string name) {
  const uint64_t num_bytes = bytes.size();
  MegatronIndex::Read read = [bytes = std::move(bytes)](uint64_t begin, uint64_t end,
                                                        char* buffer) {
    TITAN_ASSERT(begin <= end && end <= bytes.size());
    std::memcpy(buffer, bytes.data() + begin, end - begin);
  };
  return MegatronIndex(std::move(read), num_bytes, bin_size, std::move(name));
}

}  // namespace titan::datasets
