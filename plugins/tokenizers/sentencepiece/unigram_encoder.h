// The unigram language model of SentencePiece: finds the pieces with the highest total score. Used
// by the tokenizer for models of type unigram. Kudo, 2018: Subword Regularization.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "id_writer.h"
#include "model_file.h"
#include "piece_trie.h"

namespace titan::sentencepiece {

/// Immutable after construction; each thread brings its own scratch. The model outlives it.
///
/// Viterbi's algorithm over the whole text, in O(n k) for pieces of at most k bytes. As in the
/// reference library (0.2.3), scores are summed in single precision from the start of the text, and
/// the sums are raised when they fall below -100,000. Rounding decides between close sums, so the
/// text is never cut.
class UnigramEncoder {
 public:
  struct Scratch {
    struct Node {  // of the best path that ends here
      float score;
      int32_t id;      // -1: unknown
      uint32_t start;  // start of its last piece; kUnreached: no path
    };
    std::vector<Node> best;
    std::vector<uint32_t> ends;
  };

  explicit UnigramEncoder(const ModelFile& model);

  /// Writes the ids of normalised text.
  void encode(std::string_view text, Scratch& scratch, IdWriter& writer) const;

 private:
  const ModelFile& model_;
  PieceTrie trie_;
  std::vector<float> scores_;  // by id
  float unknown_score_;
};

}  // namespace titan::sentencepiece
