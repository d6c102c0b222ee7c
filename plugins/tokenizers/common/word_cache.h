// Caches the ids of short pieces of text, because natural text repeats its words. Used by IdWriter
// and BpeEncoder, one per thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace titan::bpe {

/// Two-way associative, of fixed size: a new piece replaces the older one of its set. Keys are
/// pieces of 1 to kKeyBytes bytes, zero-padded; values are at most kMaxIds ids.
template <size_t kKeyBytes, size_t kMaxIds, int kLogSets>
class WordCache {
 public:
  static constexpr size_t kWords = kKeyBytes / 8;
  static_assert(kKeyBytes % 8 == 0 && kKeyBytes < 256 && kMaxIds < 256);

  struct Key {
    std::array<uint64_t, kWords> words{};
    uint8_t length = 0;
    uint32_t set = 0;

    /// The piece; valid as long as the key.
    std::string_view piece() const { return {reinterpret_cast<const char*>(words.data()), length}; }
  };

  WordCache() : sets_(size_t{1} << kLogSets) {}

  static Key key_of(std::string_view piece) {
    Key key;
    load(piece, key.words);
    key.length = static_cast<uint8_t>(piece.size());
    uint64_t hash = piece.size();
    for (uint64_t word : key.words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    key.set = static_cast<uint32_t>(hash * 0xD6E8FEB86659FD93u >> (64 - kLogSets));
    return key;
  }

  /// Prefetches the piece's set, so that a later find() waits less.
  void prefetch(const Key& key) const {
    __builtin_prefetch(&sets_[key.set][0]);
    __builtin_prefetch(&sets_[key.set][1]);
  }

  /// The ids of the piece; empty if it is not cached (a piece always has an id).
  std::span<const int32_t> find(const Key& key) const {
    for (const Entry& entry : sets_[key.set]) {
      if (entry.length == key.length && entry.words == key.words) {
        return {entry.ids.data(), entry.num_ids};
      }
    }
    return {};
  }

  /// `key` must not be cached yet.
  void put(const Key& key, std::span<const int32_t> ids) {
    if (ids.size() > kMaxIds) return;
    auto& [newer, older] = sets_[key.set];
    older = newer;
    newer.words = key.words;
    newer.length = key.length;
    newer.num_ids = static_cast<uint8_t>(ids.size());
    std::memcpy(newer.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  // Whole cache lines: most look-ups cost one miss, which dominates their time.
  struct alignas(64) Entry {
    std::array<uint64_t, kWords> words{};
    uint8_t length = 0;  // 0: free
    uint8_t num_ids = 0;
    std::array<int32_t, kMaxIds> ids{};
  };

  template <class T>
  static uint64_t read(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return value;
  }
  // Loads two words without a memcpy of variable length. Reads no byte beyond the piece;
  // overlapping reads agree.
  static void load(std::string_view piece, std::array<uint64_t, kWords>& words) {
    const char* p = piece.data();
    const size_t n = piece.size();
    if constexpr (kWords > 2) {
      std::memcpy(words.data(), p, n);
    } else if (n > 8) {
      words[0] = read<uint64_t>(p);
      words[1] = read<uint64_t>(p + n - 8) >> (8 * (16 - n));
    } else if (n >= 4) {
      words[0] = read<uint32_t>(p) | read<uint32_t>(p + n - 4) << (8 * (n - 4));
    } else {
      words[0] = read<uint8_t>(p) | read<uint8_t>(p + n / 2) << (8 * (n / 2)) |
                 read<uint8_t>(p + n - 1) << (8 * (n - 1));
    }
  }

  std::vector<std::array<Entry, 2>> sets_;
};

}  // namespace titan::bpe
