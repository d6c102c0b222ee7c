// Normalises text before a SentencePiece model cuts it into pieces. Used by the tokenizer, also as
// the model's denormalizer.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "charsmap.h"
#include "model_file.h"
#include "piece_trie.h"

namespace titan::sentencepiece {

/// Immutable. User-defined pieces stay unchanged, the longest first; all other text goes through
/// the charsmap. Then, according to the spec: spaces at both ends are removed, runs of spaces
/// become one, a space is added at the start (with whitespace as suffix: at the end), and each
/// space becomes U+2581.
class Normalizer {
 public:
  /// `user_defined` outlives the normalizer; `file` names the model for messages.
  Normalizer(const NormalizerSpec& spec, bool whitespace_as_suffix, const PieceTrie& user_defined,
             const std::string& file);

  /// `text` must be UTF-8; so is `out`, whose content is replaced.
  void apply(std::string_view text, std::string& out) const;

 private:
  size_t plain_run(std::string_view text) const;
  std::pair<std::string_view, size_t> prefix(std::string_view text) const;

  const PieceTrie& user_defined_;
  Charsmap charsmap_;
  std::string_view space_;
  bool remove_extra_;
  bool dummy_in_front_;
  bool dummy_behind_;
  // bytes that stay unchanged: no rule and no user-defined piece starts with them; with a charsmap
  // only ASCII before ASCII
  std::array<bool, 256> plain_{};
  bool plain_blank_;  // the same for the space
};

}  // namespace titan::sentencepiece
