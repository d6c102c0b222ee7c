#include "unigram_encoder.h"

#include <algorithm>
#include <limits>

#include "../common/unicode.h"
#include "piece_table.h"

namespace titan::sentencepiece {
namespace {

using Node = UnigramEncoder::Scratch::Node;

constexpr uint32_t kUnreached = std::numeric_limits<uint32_t>::max();
constexpr float kUnknownPenalty = 10;      // below the lowest score
constexpr float kUserDefinedScore = 0.1F;  // per byte except one; replaces the file's score
constexpr float kLowestSum = -100'000;     // sums below it would round too much

void offer(Node& node, float score, int32_t id, uint32_t start) {
  if (node.start == kUnreached || score > node.score) node = {score, id, start};
}

}  // namespace

UnigramEncoder::UnigramEncoder(const ModelFile& model) : model_(model) {
  std::vector<std::pair<std::string_view, int32_t>> texts;
  float lowest = std::numeric_limits<float>::max();
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    if (piece.type == PieceType::normal) lowest = std::min(lowest, piece.score);
    scores_.push_back(piece.type == PieceType::user_defined
                          ? kUserDefinedScore * static_cast<float>(piece.text.size() - 1)
                          : piece.score);
    if (is_text(piece.type) && piece.type != PieceType::unused)
      texts.emplace_back(piece.text, static_cast<int32_t>(id));
  }
  trie_ = PieceTrie(std::move(texts));
  unknown_score_ = lowest - kUnknownPenalty;
}

void UnigramEncoder::encode(std::string_view text, Scratch& scratch, IdWriter& writer) const {
  std::vector<Node>& best = scratch.best;
  best.assign(text.size() + 1, {0, -1, kUnreached});
  size_t reached = 0;  // the end of the longest piece so far
  for (size_t start = 0; start < text.size();) {
    if (const float base = best[start].score; base < kLowestSum) {
      for (size_t end = start; end <= reached; ++end) best[end].score -= base;
    }
    const float before = best[start].score;
    const auto here = static_cast<uint32_t>(start);
    const auto character = static_cast<size_t>(bpe::decode_utf8(text.data() + start).length);
    bool has_character = false;
    uint32_t node = PieceTrie::kRoot;
    for (size_t end = start + 1; end <= text.size(); ++end) {
      node = trie_.child(node, static_cast<uint8_t>(text[end - 1]));
      if (node == PieceTrie::kNone) break;
      const int32_t id = trie_.id(node);
      if (id < 0) continue;
      offer(best[end], scores_[static_cast<size_t>(id)] + before, id, here);
      has_character = has_character || end == start + character;
      reached = std::max(reached, end);
    }
    if (!has_character) {
      offer(best[start + character], unknown_score_ + before, -1, here);
      reached = std::max(reached, start + character);
    }
    start += character;
  }
  scratch.ends.clear();
  for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = best[end].start)
    scratch.ends.push_back(end);
  for (auto end = scratch.ends.rbegin(); end != scratch.ends.rend(); ++end) {
    const Node& last = best[*end];
    if (last.id >= 0)
      writer.piece(last.id);
    else
      writer.unknown(text.substr(last.start, *end - last.start));
  }
}

}  // namespace titan::sentencepiece
