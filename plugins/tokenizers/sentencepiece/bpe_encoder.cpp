#include "bpe_encoder.h"

#include <algorithm>
#include <array>
#include <limits>

#include "../common/unicode.h"

namespace titan::sentencepiece {
namespace {

using Pair = BpeEncoder::Scratch::Pair;
using Symbol = BpeEncoder::Scratch::Symbol;

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
constexpr float kNoScore = -std::numeric_limits<float>::infinity();  // scores are finite
constexpr size_t kMaxScan = 32;  // up to this many symbols a scan is faster than a heap

}  // namespace

BpeEncoder::BpeEncoder(const ModelFile& model, const PieceTrie& user_defined)
    : model_(model), user_defined_(user_defined), table_(model), boundaries_(model) {}

void BpeEncoder::encode(std::string_view text, Scratch& scratch, IdWriter& writer) const {
  if (boundaries_.needs_whole_text()) {
    if (!text.empty()) merge(text, scratch, writer);
    return;
  }
  size_t start = 0;
  char32_t left = 0;
  for (size_t i = 0; i < text.size();) {
    if (user_defined_.begins(static_cast<uint8_t>(text[i]))) {
      const auto [length, id] = user_defined_.longest(text.substr(i));
      if (length > 0) {
        if (start < i) encode_part(text.substr(start, i - start), scratch, writer);
        writer.piece(id);
        start = i += length;
        continue;
      }
    }
    const auto right = bpe::decode_utf8(text.data() + i);
    if (start < i && !boundaries_.may_join(left, right.value)) {
      encode_part(text.substr(start, i - start), scratch, writer);
      start = i;
    }
    left = right.value;
    i += static_cast<size_t>(right.length);
  }
  if (start < text.size()) encode_part(text.substr(start), scratch, writer);
}

void BpeEncoder::encode_part(std::string_view text, Scratch& scratch, IdWriter& writer) const {
  const auto through = [&](auto& cache) {
    const auto key = cache.key_of(text);
    if (const auto ids = cache.find(key); !ids.empty()) return writer.append(ids);
    scratch.ids.clear();
    IdWriter part(model_, scratch.ids);
    merge(text, scratch, part);
    cache.put(key, scratch.ids);
    writer.append(scratch.ids);
  };
  if (text.size() <= 16)
    through(scratch.short_words);
  else if (text.size() <= 48)
    through(scratch.long_words);
  else
    merge(text, scratch, writer);
}

void BpeEncoder::split_symbols(std::string_view text, Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (size_t i = 0; i < text.size();) {
    size_t length = 0;
    if (user_defined_.begins(static_cast<uint8_t>(text[i])))
      length = user_defined_.longest(text.substr(i)).first;
    const bool frozen = length > 0;
    if (!frozen) length = static_cast<size_t>(bpe::decode_utf8(text.data() + i).length);
    const auto index = static_cast<uint32_t>(symbols.size());
    symbols.push_back({.start = static_cast<uint32_t>(i),
                       .length = static_cast<uint32_t>(length),
                       .previous = index - 1,  // kNone of the first
                       .next = index + 1,
                       .frozen = frozen});
    i += length;
  }
  symbols.back().next = kNone;
}

// The score of the concatenation of two neighbours; kNoScore if it is not a piece. Records the
// split of an unused piece.
float BpeEncoder::score(std::string_view text, const Symbol& left, const Symbol& right,
                        Scratch& scratch) const {
  if (left.frozen || right.frozen) return kNoScore;
  const std::string_view together = text.substr(left.start, left.length + right.length);
  const int32_t id = table_.find(together);
  if (id < 0) return kNoScore;
  const Piece& piece = model_.pieces[static_cast<size_t>(id)];
  if (piece.type == PieceType::unused) scratch.cuts[together] = left.length;
  return piece.score;
}

void BpeEncoder::merge(std::string_view text, Scratch& scratch, IdWriter& writer) const {
  split_symbols(text, scratch);
  if (!scratch.cuts.empty()) scratch.cuts.clear();
  if (scratch.symbols.size() <= kMaxScan)
    merge_by_scan(text, scratch);
  else
    merge_by_heap(text, scratch);
  for (const Symbol& symbol : scratch.symbols)
    if (symbol.length > 0) write(text.substr(symbol.start, symbol.length), scratch, writer);
}

// Scans all pairs each time.
void BpeEncoder::merge_by_scan(std::string_view text, Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::array<float, kMaxScan> scores;  // of each symbol with the next; that of the last is kNoScore
  size_t num = symbols.size();
  for (size_t i = 0; i + 1 < num; ++i) scores[i] = score(text, symbols[i], symbols[i + 1], scratch);
  for (; num > 1; --num) {
    scores[num - 1] = kNoScore;
    const auto best = static_cast<size_t>(
        std::max_element(scores.begin(), scores.begin() + static_cast<ptrdiff_t>(num)) -
        scores.begin());  // the leftmost of equals
    if (scores[best] == kNoScore) break;
    symbols[best].length += symbols[best + 1].length;
    for (size_t i = best + 1; i + 1 < num; ++i) {
      symbols[i] = symbols[i + 1];
      scores[i] = scores[i + 1];
    }
    if (best > 0) scores[best - 1] = score(text, symbols[best - 1], symbols[best], scratch);
    if (best + 2 < num) scores[best] = score(text, symbols[best], symbols[best + 1], scratch);
  }
  symbols.resize(num);
}

void BpeEncoder::merge_by_heap(std::string_view text, Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<Pair>& heap = scratch.heap;
  const auto comes_later = [](const Pair& a, const Pair& b) {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  };
  const auto add_pair = [&](uint32_t left, uint32_t right) {
    if (left == kNone || right == kNone) return;
    const float together = score(text, symbols[left], symbols[right], scratch);
    if (together == kNoScore) return;
    heap.push_back({together, left, right, symbols[left].length + symbols[right].length});
    std::push_heap(heap.begin(), heap.end(), comes_later);
  };
  heap.clear();
  for (uint32_t i = 1; i < symbols.size(); ++i) add_pair(i - 1, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Pair best = heap.back();
    heap.pop_back();
    Symbol& left = symbols[best.left];
    Symbol& right = symbols[best.right];
    if (left.length == 0 || right.length == 0 || left.length + right.length != best.length)
      continue;  // stale: one of them has merged with another since
    left.length = best.length;
    left.next = right.next;
    right.length = 0;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    add_pair(left.previous, best.left);
    add_pair(best.left, left.next);
  }
}

// Unused pieces are split again; an unused piece of one character is unknown.
void BpeEncoder::write(std::string_view symbol, Scratch& scratch, IdWriter& writer) const {
  scratch.stack.assign(1, symbol);
  while (!scratch.stack.empty()) {
    const std::string_view text = scratch.stack.back();
    scratch.stack.pop_back();
    const int32_t id = table_.find(text);
    if (id < 0) {
      writer.unknown(text);
    } else if (model_.pieces[static_cast<size_t>(id)].type != PieceType::unused) {
      writer.piece(id);
    } else if (const auto cut = scratch.cuts.find(text); cut == scratch.cuts.end()) {
      writer.unknown(text);
    } else {
      scratch.stack.push_back(text.substr(cut->second));
      scratch.stack.push_back(text.substr(0, cut->second));
    }
  }
}

}  // namespace titan::sentencepiece
