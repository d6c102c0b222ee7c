// Losses in the output head that are not sums over tokens, and distillation losses with a
// reference. Compared with autograd over whole logits.
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/nn/head.h>
#include <titan/ops/chunked_loss.h>
#include <titan/reference_loss.h>
#include <titan/sequence_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::head_loss_test {
namespace {

using at::Tensor;

constexpr int64_t kDim = 24, kVocab = 16500, kRows = 2, kSeqLen = 260;  // two chunks

/// A loss over several rows: Σ over neighbouring rows of the product of their sums. Likelihoods are
/// 0 for tokens without a target.
Tensor of_neighbours(const Tensor& log_likelihoods) {
  const Tensor sums = log_likelihoods.sum(1) / 100;
  return (sums * sums.roll({1})).sum() + sums.sum();
}

class Neighbours final : public SequenceLoss {
 public:
  std::vector<std::string> part_names() const override { return {"largest"}; }
  RowsLoss of_sequences(const Tensor& log_likelihoods, const Batch&) override {
    ++calls;
    seen = log_likelihoods.detach();
    const Tensor loss =
        is_constant ? log_likelihoods.detach().sum() : of_neighbours(log_likelihoods);
    return {.sum = loss, .parts = {log_likelihoods.sum(1).max()}};
  }
  int64_t num_terms(const Batch& batch) const override { return batch.labels.size(0); }

  int calls = 0;
  bool is_constant = false;
  Tensor seen;
};

/// Σ over the vocabulary of (logits - reference)², for tokens with a target.
class Distance final : public DistillationLoss {
 public:
  RowsLoss of_rows_beside(const Tensor& logits, const Tensor& reference,
                          const Tensor& labels) override {
    const Tensor distances = (logits - reference).square().sum(1);
    return {.sum = distances.masked_fill(labels.eq(Batch::kIgnoredLabel), 0).sum()};
  }
};

Batch some_batch() {
  const Tensor place = at::arange(kRows * kSeqLen);
  const Tensor labels = (place * 53 + 7).remainder(kVocab);
  return {.labels = labels.masked_fill(place.remainder(5).eq(1), Batch::kIgnoredLabel)
                        .view({kRows, kSeqLen})};
}

Tensor some_x() {
  const Tensor x = (at::arange(kRows * kSeqLen * kDim, at::kDouble) * 0.7311).sin().mul_(3);
  return x.view({kRows, kSeqLen, kDim}).requires_grad_();
}

std::unique_ptr<nn::OutputHead> make_head(nn::HeadLoss loss) {
  auto head = std::make_unique<nn::OutputHead>(
      nn::OutputHeadOptions{.dim = kDim, .vocab_size = kVocab, .init = nn::Init::normal(0, 0.5)});
  head->set_loss(std::move(loss));
  head->set_names("");
  head->visit_parameters([](nn::Parameter& p) { p.materialize(c10::kCPU, at::kDouble, 5); });
  return head;
}

Tensor whole_logits(nn::OutputHead& head, const Tensor& x, const Batch& batch) {
  return at::matmul(head.norm()(x, batch), head.weight().value().t());
}

/// By ATen: log softmax(logits)[label], 0 where a token has no target.
Tensor likelihoods(const Tensor& logits, const Tensor& labels) {
  const Tensor ignored = labels.eq(Batch::kIgnoredLabel);
  return at::log_softmax(logits, 2)
      .gather(2, labels.masked_fill(ignored, 0).unsqueeze(2))
      .squeeze(2)
      .masked_fill(ignored, 0);
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance) {
  EXPECT_LE((found - expected).abs().max().item<double>(),
            tolerance * expected.abs().max().item<double>());
}

void expect_equal_gradients(nn::OutputHead& head, const Tensor& x, const Tensor& loss,
                            const Tensor& expected) {
  const std::vector<Tensor> leaves = {x, head.weight().value()};
  const auto found = torch::autograd::grad({loss}, leaves);
  const auto exact = torch::autograd::grad({expected}, leaves);
  EXPECT_NEAR(loss.item<double>() / expected.item<double>(), 1, 1e-13);
  for (size_t i = 0; i < leaves.size(); ++i) expect_near(found[i], exact[i], 1e-12);
}

// with one chunk alone, a wrong offset of the second would not be noticed
TEST(SequenceLosses, AreTestedWithTwoChunks) {
  EXPECT_EQ(ops::chunk_rows(kRows * kSeqLen, kVocab, ops::kComposedLogitsBytes),
            kRows * kSeqLen / 2);
}

TEST(SequenceLosses, EqualAutogradOverWholeLogits) {
  const auto loss = std::make_shared<Neighbours>();
  std::vector<double> parts;
  const auto head = make_head({.loss = loss, .take_parts = [&](const std::vector<Tensor>& taken) {
                                 parts.push_back(taken.at(0).item<double>());
                               }});
  const Batch batch = some_batch();
  const Tensor x = some_x();
  const Tensor found = (*head)(x, batch);
  const Tensor expected = likelihoods(whole_logits(*head, x, batch), batch.labels);
  EXPECT_EQ(loss->calls, 1) << "once for all chunks";
  EXPECT_EQ(loss->seen.sizes(), batch.labels.sizes());
  expect_near(loss->seen, expected.detach(), 1e-13);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_NEAR(parts[0], expected.sum(1).max().item<double>(), 1e-10);
  expect_equal_gradients(*head, x, found, of_neighbours(expected));
}

TEST(SequenceLosses, HaveTheSameValueInValidation) {
  const auto head = make_head({.loss = std::make_shared<Neighbours>()});
  const double trained = (*head)(some_x(), some_batch()).item<double>();
  const at::NoGradGuard no_grad;
  EXPECT_EQ((*head)(some_x(), some_batch()).item<double>(), trained);
}

TEST(SequenceLosses, WithoutAGraphGiveGradientsOfZero) {
  const auto loss = std::make_shared<Neighbours>();
  loss->is_constant = true;
  const auto head = make_head({.loss = loss});
  const Tensor x = some_x();
  const auto gradients =
      torch::autograd::grad({(*head)(x, some_batch())}, {x, head->weight().value()});
  for (const Tensor& gradient : gradients) EXPECT_EQ(gradient.abs().max().item<double>(), 0);
}

TEST(SequenceLosses, AreTheSameWhereTheVocabularyIsCut) {
  const tensor_test::MakeLayers layers = [&] {
    std::vector<Layer> made = tensor_test::small_llama(/*is_tied=*/false)();
    auto& head = dynamic_cast<nn::OutputHead&>(*made.back().module);
    head.set_loss({.loss = std::make_shared<Neighbours>()});
    return made;
  };
  const tensor_test::StepResult alone = tensor_test::run_alone(layers);
  for (const tensor_test::TensorCase& cut : tensor_test::all_tensor_cases()) {
    SCOPED_TRACE(cut.text());
    tensor_test::expect_equal_steps(tensor_test::run_cut(layers, cut), alone);
  }
}

TEST(DistillationLosses, SeeTheReferenceOfTheirOwnRows) {
  const auto head = make_head({.loss = std::make_shared<Distance>()});
  Batch batch = some_batch();
  const Tensor x = some_x();
  batch.reference = (at::arange(kRows * kSeqLen * kVocab, at::kDouble) * 0.317)
                        .cos()
                        .view({kRows, kSeqLen, kVocab});
  const Tensor distances = (whole_logits(*head, x, batch) - batch.reference).square().sum(2);
  const Tensor expected = distances.masked_fill(batch.labels.eq(Batch::kIgnoredLabel), 0).sum();
  expect_equal_gradients(*head, x, (*head)(x, batch), expected);
}

}  // namespace
}  // namespace titan::head_loss_test
