// Dataset `synthetic`: random tokens whose least possible loss is known, for tests of training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dataset.h>

namespace titan::datasets {

enum class SyntheticTask {
  markov,   ///< each token depends on the one before: a model must learn a table
  copy,     ///< random tokens, then the same again: a model must look back
  uniform,  ///< nothing to learn
};

struct SyntheticOptions {
  SyntheticTask task = SyntheticTask::markov;
  int64_t vocab_size = 256;
  int64_t document_length = 1024;   ///< tokens per document
  int64_t num_documents = 1 << 20;  ///< per epoch; nothing is stored
  int64_t first_document = 0;       ///< number of the first: separates data sets of one seed
  int64_t branching = 4;            ///< markov: tokens that can follow a token
};

/// The least mean loss in nats that any model can have, if each document is read from its start and
/// the model knows that it starts there.
struct SyntheticOptimum {
  double first_token = 0;  ///< loss of a document's first token, which cannot be predicted
  double per_token = 0;    ///< mean over all tokens of a document, the first included
  double after_first = 0;  ///< mean over all but the first: each is predicted from its document
};

/// Each document is a pure function of the seed and its number. With w_k ~ 1 / k for k = 1 ..
/// branching and s a permutation of the vocabulary drawn from the seed:
///
/// markov   x_0 is uniform and x_i = s[(x_(i-1) + k - 1) mod vocab_size] with probability w_k.
///          Each k alone permutes the tokens, so all tokens stay equally frequent, every row of the
///          transition table has the entropy H(w), which is also the entropy rate.
/// copy     0, n random tokens, 1, the same n tokens; drawn from 2 .. vocab_size - 1,
///          n = document_length / 2 - 1. Only the first n have a loss: ln(vocab_size - 2) each.
/// uniform  ln(vocab_size) for every token.
///
/// A model that does not see where documents begin can lose more, but with p = 1 / document_length
/// never more than -p ln p - (1 - p) ln(1 - p) per token, the entropy of these starts.
class SyntheticDataset final : public IndexedDataset {
 public:
  /// Throws a config Error for options that contradict each other. Logs the optimum.
  SyntheticDataset(const SyntheticOptions& options, DatasetContext context);

  int64_t size() const override { return options_.num_documents; }
  void read(int64_t index, Document& document) const override;
  std::string place(int64_t index) const override;
  /// All options and the seed.
  std::string fingerprint() const override;

  SyntheticOptimum optimum() const;

 private:
  SyntheticOptions options_;
  uint64_t seed_;
  std::vector<int32_t> successors_;  // s of markov
  std::vector<double> cumulative_;   // of w
};

}  // namespace titan::datasets
