// What a SentencePiece model does to text before it is cut into pieces. Used by the tokenizer; the
// denormalizer of a model is one, too.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "charsmap.h"
#include "model_file.h"
#include "piece_trie.h"

namespace titan::sentencepiece {

/// Immutable. User-defined pieces stay as they are, the longest first; all other text goes through
/// the charsmap. Then, as the spec says: blanks at both ends and in runs go, a blank is put in
/// front (or, with whitespace as suffix, behind), and each blank becomes U+2581.
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
  // bytes that stay as they are: all that no rule and no user-defined piece begins with; with a
  // charsmap ASCII in front of ASCII only
  std::array<bool, 256> plain_{};
  bool plain_blank_;  // the same of the blank
};

}  // namespace titan::sentencepiece
