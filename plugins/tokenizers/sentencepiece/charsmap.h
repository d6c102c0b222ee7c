// The compiled character rules of a SentencePiece normalizer (nmt_nfkc and its like): a double
// array over byte strings, and the texts that replace them. Used by the normalizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Immutable. A rule replaces one string by another; the longest rule that fits wins.
///
/// Layout: size of the array in bytes (32 bits, little-endian), the units of the array (32 bits
/// each, Darts-clone), then the replacements, each ended by NUL.
class Charsmap {
 public:
  struct Match {
    size_t length = 0;             ///< bytes that the rule takes; 0: no rule fits
    std::string_view replacement;  ///< valid UTF-8, maybe empty
  };

  Charsmap() = default;
  /// Of spec.charsmap; without rules when that is empty. Throws a data Error that names `file` and
  /// the byte for an array that leads beyond its end and for replacements that are not UTF-8.
  Charsmap(const NormalizerSpec& spec, const std::string& file);

  bool empty() const { return units_.empty(); }
  /// Whether an ASCII character stays as it is, at least in front of another one.
  bool keeps(char ascii) const;
  /// The longest rule for a prefix of `text`.
  Match longest(std::string_view text) const;

 private:
  void check(const NormalizerSpec& spec, const std::string& file) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace titan::sentencepiece
