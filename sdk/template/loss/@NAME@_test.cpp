// Tests of the loss @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/loss.h>
#include <titan/testing/component.h>
#include <titan/testing/network.h>

namespace {

using titan::testing::make;
using titan::testing::random;

constexpr int64_t kTokens = 6, kVocabSize = 8;

/// A label for each token.
at::Tensor some_labels() { return random({kTokens, kVocabSize}, 2).argmax(1); }

double sum_of(titan::Loss& loss, const at::Tensor& logits, const at::Tensor& labels) {
  return loss.of_rows(logits, labels).sum.item<double>();
}

TEST(@CLASS@, WithoutGammaItIsTheCrossEntropy) {
  const auto loss = make<titan::Loss>("@FULL_NAME@", {{"gamma", 0.0}}, {.vocab_size = kVocabSize});
  const at::Tensor logits = random({kTokens, kVocabSize}, 1), labels = some_labels();
  const double expected = -logits.log_softmax(1).gather(1, labels.unsqueeze(1)).sum().item<double>();
  EXPECT_NEAR(sum_of(*loss, logits, labels), expected, 1e-5);
}

TEST(@CLASS@, ChunksAddUpToTheWhole) {
  const auto loss = make<titan::Loss>("@FULL_NAME@", {}, {.vocab_size = kVocabSize});
  const at::Tensor logits = random({kTokens, kVocabSize}, 1), labels = some_labels();
  const double first = sum_of(*loss, logits.narrow(0, 0, 2), labels.narrow(0, 0, 2));
  const double rest = sum_of(*loss, logits.narrow(0, 2, 4), labels.narrow(0, 2, 4));
  EXPECT_NEAR(first + rest, sum_of(*loss, logits, labels), 1e-5);
}

TEST(@CLASS@, TokensWithoutALabelAddNothing) {
  const auto loss = make<titan::Loss>("@FULL_NAME@", {}, {.vocab_size = kVocabSize});
  const at::Tensor logits = random({kTokens, kVocabSize}, 1).requires_grad_();
  const at::Tensor labels = some_labels();
  labels.select(0, 2).fill_(titan::Batch::kIgnoredLabel);
  loss->of_rows(logits, labels).sum.backward();
  EXPECT_EQ(logits.grad().select(0, 2).abs().sum().item<double>(), 0);
  EXPECT_GT(logits.grad().select(0, 3).abs().sum().item<double>(), 0);
}

}  // namespace
