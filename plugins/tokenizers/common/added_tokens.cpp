#include "added_tokens.h"

#include <algorithm>

#include <titan/error.h>

#include "unicode.h"

namespace titan::bpe {

void AddedTokenFinder::add(const AddedToken& token, std::string_view needle) {
  TITAN_ASSERT(!needle.empty(), "an added token looks for nothing");
  uint32_t at = 0;
  for (char c : needle) {
    const auto byte = static_cast<unsigned char>(c);
    const auto& children = nodes_[at].children;
    const auto child = std::lower_bound(children.begin(), children.end(),
                                        std::pair<unsigned char, uint32_t>(byte, 0));
    if (child != children.end() && child->first == byte) {
      at = child->second;
      continue;
    }
    const auto added = static_cast<uint32_t>(nodes_.size());
    nodes_[at].children.insert(child, {byte, added});
    nodes_.emplace_back();
    at = added;
  }
  if (nodes_[at].token < 0) nodes_[at].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
  can_begin_[static_cast<unsigned char>(needle.front())] = true;
  has_plain_ = has_plain_ || !token.special;
}

AddedTokenFinder::Hit AddedTokenFinder::longest_at(std::string_view text, size_t begin) const {
  Hit longest{begin, 0, nullptr};
  const Node* node = &nodes_[0];
  for (size_t i = begin; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto child = std::lower_bound(node->children.begin(), node->children.end(),
                                        std::pair<unsigned char, uint32_t>(byte, 0));
    if (child == node->children.end() || child->first != byte) break;
    node = &nodes_[child->second];
    if (node->token >= 0) longest = {begin, i + 1, &tokens_[static_cast<size_t>(node->token)]};
  }
  return longest;
}

bool AddedTokenFinder::touches_word(std::string_view text, const Hit& hit) {
  const char* begin = text.data() + hit.begin;
  const char* end = text.data() + hit.end;
  return (hit.begin > 0 && is_word(decode_utf8(previous_utf8(begin)).value)) ||
         (hit.end < text.size() && is_word(decode_utf8(end).value));
}

void AddedTokenFinder::fit_to_neighbours(std::string_view text, size_t done, Hit& hit) const {
  while (hit.token->lstrip && hit.begin > done) {
    const char* before = previous_utf8(text.data() + hit.begin);
    if (!is_white_space(decode_utf8(before).value)) break;
    hit.begin = static_cast<size_t>(before - text.data());
  }
  while (hit.token->rstrip && hit.end < text.size()) {
    const CodePoint after = decode_utf8(text.data() + hit.end);
    if (!is_white_space(after.value)) break;
    hit.end += static_cast<size_t>(after.length);
  }
}

void AddedTokenFinder::split(std::string_view text, SpelledTokens special,
                             AddedTokenSink& sink) const {
  const bool parses_special = special == SpelledTokens::become_ids;
  const bool finds_any = has_plain_ || parses_special;
  size_t done = 0;
  for (size_t at = 0; finds_any && at < text.size();) {
    if (!can_begin_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    Hit hit = longest_at(text, at);
    if (hit.end == 0) {
      ++at;
      continue;
    }
    // A token that stays text still hides shorter ones inside it, as in the reference library.
    at = hit.end;
    if (hit.token->special && !parses_special) continue;
    if (hit.token->single_word && touches_word(text, hit)) continue;
    fit_to_neighbours(text, done, hit);
    if (hit.begin > done) sink.text(text.substr(done, hit.begin - done));
    sink.token(hit.token->id);
    done = hit.end;
  }
  if (done < text.size()) sink.text(text.substr(done));
}

}  // namespace titan::bpe
