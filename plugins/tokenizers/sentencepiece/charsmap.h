// Compiled character rules of a SentencePiece normalizer (such as nmt_nfkc): a double array over
// byte strings, and their replacements. Used by Normalizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Immutable. A rule replaces one string by another; the longest matching rule wins.
///
/// Layout: size of the array in bytes (32 bits, little-endian), the units of the array (32 bits
/// each, Darts-clone), then the replacements, each ended by NUL.
class Charsmap {
 public:
  struct Match {
    size_t length = 0;             ///< matched bytes; 0: no rule matches
    std::string_view replacement;  ///< valid UTF-8, maybe empty
  };

  Charsmap() = default;
  /// Reads spec.charsmap; no rules if it is empty. Throws a data Error that names `file` and the
  /// byte if the array points beyond its end or a replacement is not UTF-8.
  Charsmap(const NormalizerSpec& spec, const std::string& file);

  bool empty() const { return units_.empty(); }
  /// Whether an ASCII character stays unchanged, at least before another one.
  bool keeps(char ascii) const;
  /// The longest rule for a prefix of `text`.
  Match longest(std::string_view text) const;

 private:
  void check(const NormalizerSpec& spec, const std::string& file) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace titan::sentencepiece
