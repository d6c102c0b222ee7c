#include "bpe.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "byte_level.h"

namespace titan::huggingface {
namespace {

// Up to this many symbols, looking at all ranks each time is faster than a heap.
constexpr size_t kMaxScan = 64;

size_t num_merges(const JsonView& model) {
  return model.at("merges").json().size();
}

void require_unset(const JsonView& model, std::string_view field) {
  const std::optional<JsonView> given = model.find(field);
  if (given && !given->text().empty()) {
    given->fail("is not supported for byte-level tokenizers; supported: null");
  }
}

// Bytes that no UTF-8 text has.
bool never_occurs(unsigned byte) {
  return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5;
}

// "a b" or ["a", "b"].
std::pair<std::string, std::string> read_pair(const JsonView& merge) {
  if (merge.is_array()) {
    const std::vector<JsonView> parts = merge.items();
    if (parts.size() != 2) {
      merge.fail(detail::concat("a merge has two tokens, got ", parts.size()));
    }
    return {parts[0].text(), parts[1].text()};
  }
  const std::string text = merge.text();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    merge.fail("a merge has two tokens with one space between, got \"" + text +
               "\"; write tokens that hold spaces as [\"left\", \"right\"]");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

Bpe::Bpe(const JsonView& model, const Vocabulary& vocabulary) : merges_(num_merges(model)) {
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  if (const auto dropout = model.find("dropout")) {
    if (!dropout->json().is_number() || dropout->json().get<double>() != 0) {
      dropout->fail("dropout makes ids random and is not supported; supported: null");
    }
  }
  require_unset(model, "continuing_subword_prefix");
  require_unset(model, "end_of_word_suffix");
  if (model.flag_or("byte_fallback", false)) {
    model.at("byte_fallback").fail("is not supported for byte-level tokenizers; supported: false");
  }
  if (const auto unknown = model.find("unk_token")) {
    unknown_ = vocabulary.find(unknown->text());
    if (!unknown_) unknown->fail("token \"" + unknown->text() + "\" is not in the vocab");
  }
  fuse_unknown_ = model.flag_or("fuse_unk", false);
  read_bytes(model, vocabulary);
  if (model.flag_or("ignore_merges", false)) {
    for (const auto& [token, id] : vocabulary.ids()) {
      if (std::optional<std::string> bytes = bytes_of_token(token)) whole_.emplace(*bytes, id);
    }
  }
  read_merges(model.at("merges"), vocabulary);
}

void Bpe::read_bytes(const JsonView& model, const Vocabulary& vocabulary) {
  int num_missing = 0;
  unsigned first_missing = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    id_of_byte_[byte] = vocabulary.find(token_of_byte(static_cast<uint8_t>(byte))).value_or(-1);
    if (id_of_byte_[byte] >= 0 || never_occurs(byte)) continue;
    if (num_missing++ == 0) first_missing = byte;
  }
  if (num_missing == 0 || unknown_) return;
  model.at("vocab").fail(detail::concat(
      num_missing, " of the 256 bytes have no token, the first is byte ", first_missing, " (\"",
      token_of_byte(static_cast<uint8_t>(first_missing)),
      "\"), and there is no unk_token: text would get lost; add the missing tokens, or train with "
      "the byte-level alphabet as the initial alphabet"));
}

void Bpe::read_merges(const JsonView& merges, const Vocabulary& vocabulary) {
  uint32_t rank = 0;
  const nlohmann::json& list = merges.json();
  if (!list.is_array()) merges.items();  // says what is wrong
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonView merge(list[i], merges.file(), detail::concat(merges.path(), "[", i, "]"));
    if (list[i].is_string() && list[i].get_ref<const std::string&>().starts_with("#version")) {
      continue;
    }
    const auto [left, right] = read_pair(merge);
    const auto id_of = [&](const std::string& token) {
      const std::optional<int32_t> id = vocabulary.find(token);
      if (!id) {
        merge.fail("merge \"" + left + "\" + \"" + right + "\" needs the token \"" + token +
                   "\", which is not in the vocab");
      }
      return *id;
    };
    const int32_t left_id = id_of(left);
    const int32_t right_id = id_of(right);
    merges_.put(left_id, right_id, Merge{rank++, id_of(left + right)});
  }
}

std::span<const int32_t> Bpe::encode(std::string_view piece, Scratch& scratch) const {
  const auto through = [&](auto& cache) -> std::span<const int32_t> {
    const auto key = cache.key_of(piece);
    if (const std::span<const int32_t> known = cache.find(key); !known.empty()) return known;
    merge(piece, scratch);
    cache.put(key, scratch.ids);
    return scratch.ids;
  };
  if (piece.size() <= 16) return through(scratch.short_words);
  if (piece.size() <= 48) return through(scratch.long_words);
  merge(piece, scratch);
  return scratch.ids;
}

void Bpe::merge(std::string_view piece, Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  ids.clear();
  if (!whole_.empty()) {
    if (const auto whole = whole_.find(std::string(piece)); whole != whole_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  bool after_unknown = false;
  for (char c : piece) {
    const int32_t id = id_of_byte_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      ids.push_back(id);
    } else if (!after_unknown || !fuse_unknown_) {
      ids.push_back(unknown_.value());
    }
    after_unknown = id < 0;
  }
  if (ids.size() <= kMaxScan) {
    merge_by_scan(scratch);
  } else {
    merge_by_heap(scratch);
  }
}

void Bpe::merge_by_scan(Scratch& scratch) const {
  std::vector<int32_t>& ids = scratch.ids;
  size_t n = ids.size();
  uint32_t ranks[kMaxScan];  // of symbol i with its right neighbour
  const auto rank_at = [&](size_t i) {
    return i + 1 < n ? merges_.find(ids[i], ids[i + 1]).rank : Merge::kNone;
  };
  for (size_t i = 0; i < n; ++i) ranks[i] = rank_at(i);
  while (n > 1) {
    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
    if (ranks[best] == Merge::kNone) break;
    ids[best] = merges_.find(ids[best], ids[best + 1]).id;
    std::move(ids.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              ids.begin() + static_cast<std::ptrdiff_t>(n),
              ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::move(ranks + best + 2, ranks + n, ranks + best + 1);
    --n;
    ranks[best] = rank_at(best);
    if (best > 0) ranks[best - 1] = rank_at(best - 1);
  }
  ids.resize(n);
}

// A linked list of symbols and a heap of (rank, position): n log n. An entry is out of date when
// the rank of its position is another by now.
void Bpe::merge_by_heap(Scratch& scratch) const {
  constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  auto& [short_words, long_words, ids, ranks, previous, next, heap] = scratch;
  const uint32_t n = static_cast<uint32_t>(ids.size());
  ranks.assign(n, Merge::kNone);
  previous.resize(n);
  next.resize(n);
  heap.clear();
  for (uint32_t i = 0; i < n; ++i) {
    previous[i] = i == 0 ? kEnd : i - 1;
    next[i] = i + 1 == n ? kEnd : i + 1;
    if (next[i] == kEnd) continue;
    ranks[i] = merges_.find(ids[i], ids[i + 1]).rank;
    if (ranks[i] != Merge::kNone) heap.push_back(uint64_t{ranks[i]} << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto update = [&](uint32_t i) {
    ranks[i] = next[i] == kEnd ? Merge::kNone : merges_.find(ids[i], ids[next[i]]).rank;
    if (ranks[i] == Merge::kNone) return;
    heap.push_back(uint64_t{ranks[i]} << 32 | i);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto i = static_cast<uint32_t>(heap.back());
    const auto rank = static_cast<uint32_t>(heap.back() >> 32);
    heap.pop_back();
    if (ranks[i] != rank) continue;
    const uint32_t right = next[i];
    ids[i] = merges_.find(ids[i], ids[right]).id;
    next[i] = next[right];
    if (next[i] != kEnd) previous[next[i]] = i;
    ranks[right] = Merge::kNone;
    update(i);
    if (previous[i] != kEnd) update(previous[i]);
  }
  size_t kept = 0;
  for (uint32_t i = 0; i != kEnd; i = next[i]) ids[kept++] = ids[i];
  ids.resize(kept);
}

}  // namespace titan::huggingface
