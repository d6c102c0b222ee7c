// Compares losses and gradients with torch's cross entropy of whole logits and shifted labels, in
// double.
#include "future_heads.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <titan/nn/auxiliary_loss.h>
#include <torch/csrc/autograd/autograd.h>

namespace multi_token {
namespace {

using at::Tensor;
namespace nn = titan::nn;

constexpr int64_t kVocab = 24, kLength = 10, kDim = 16;
constexpr double kWeight = 0.7, kFactor = 0.25;

struct FutureHeadsTest : ::testing::Test {
  FutureHeadsTest() {
    heads.set_names("");
    heads.visit_parameters([](nn::Parameter& p) { p.materialize(at::kCPU, at::kDouble, 3); });
    heads.visit_modules([this](const std::string& path, nn::Module& module) {
      if (path == ".future.0" || path == "future.0") blocks[0] = &module;
      if (path == ".future.1" || path == "future.1") blocks[1] = &module;
      if (auto* found = dynamic_cast<nn::OutputHead*>(&module)) head = found;
    });
    batch.labels = at::randint(kVocab, {2, kLength}, generator, at::kLong);
    batch.labels[0][4] = titan::Batch::kIgnoredLabel;
    batch.auxiliary_losses = std::make_shared<titan::AuxiliaryLosses>(kFactor);
  }

  /// Sum of the token losses of `x` with the labels `k` places later, in the same document.
  Tensor expected_loss(const Tensor& x, int64_t k) {
    titan::Batch unlabelled;
    const Tensor logits = (*head)(x, unlabelled).to(at::kDouble);
    Tensor labels = batch.labels.roll(-k, 1);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < kLength; ++i) {
        const bool is_outside = i + k >= kLength;
        const bool is_other = !is_outside && batch.documents.defined() &&
                              !batch.documents[row][i].equal(batch.documents[row][i + k]);
        if (is_outside || is_other) labels[row][i] = titan::Batch::kIgnoredLabel;
      }
    return at::cross_entropy_loss(logits.flatten(0, 1), labels.flatten(), {}, at::Reduction::Sum);
  }

  void expect_losses() {
    const Tensor loss = heads(x, batch);
    const Tensor main = expected_loss(x, 0);
    const Tensor future = (expected_loss((*blocks[0])(x, batch), 1) +
                           expected_loss((*blocks[1])(x, batch), 2)) * (kWeight / 2);
    EXPECT_NEAR(loss.item<double>(), main.item<double>(), 1e-5);  // the head's logits are float32
    EXPECT_NEAR(*batch.auxiliary_losses->sum(), future.item<double>(), 1e-5);
    // a microbatch's loss is divided by the tokens of the step, here 1 / kFactor
    const Tensor of_x = torch::autograd::grad({loss * kFactor}, {x}, {}, true)[0];
    const Tensor wanted = torch::autograd::grad({(main + future) * kFactor}, {x})[0];
    EXPECT_TRUE(of_x.allclose(wanted, 1e-5, 1e-7));
    EXPECT_GT(future.item<double>(), 1);
  }

  titan::models::Transformer network{.dim = kDim, .n_layers = 1, .n_heads = 2, .n_kv_heads = 2,
                                     .head_dim = 8, .ffn_dim = 24, .vocab_size = kVocab};
  FutureHeads heads{network, {.count = 2, .weight = kWeight}};
  nn::Module* blocks[2] = {};
  nn::OutputHead* head = nullptr;
  at::Generator generator = at::detail::createCPUGenerator(4);
  Tensor x = at::randn({2, kLength, kDim}, generator, at::TensorOptions().dtype(at::kDouble)).requires_grad_();
  titan::Batch batch;
};

TEST_F(FutureHeadsTest, AddTheMeanOfTheirLossesAsAnAuxiliaryLoss) {
  ASSERT_TRUE(blocks[0] && blocks[1] && head);
  expect_losses();
}

TEST_F(FutureHeadsTest, PredictNothingOfTheNextDocument) {
  batch.documents = at::tensor({0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2}, at::kInt).view({2, kLength});
  expect_losses();
}

TEST_F(FutureHeadsTest, DraftFromTheFirstTokensOfTheLastInput) {
  constexpr int64_t kAccepted = 4;
  titan::Batch unlabelled;
  unlabelled.tokens = at::randint(kVocab, {2, kLength}, generator, at::kLong);
  const Tensor plain = heads(x, unlabelled);
  heads.keep_inputs(true);
  EXPECT_TRUE(heads(x, unlabelled).equal(plain));
  unlabelled.tokens = unlabelled.tokens.narrow(1, 0, kAccepted);
  const Tensor drafts = heads.draft(unlabelled), first = x.narrow(1, 0, kAccepted);
  EXPECT_EQ(drafts.size(1), 2 * kAccepted);
  for (int64_t k = 0; k < 2; ++k)
    EXPECT_TRUE(drafts.narrow(1, k * kAccepted, kAccepted)
                    .equal((*head)((*blocks[k])(first, unlabelled), unlabelled)));
  unlabelled.tokens = Tensor();
  EXPECT_TRUE(heads(x, unlabelled).equal(plain));
}

}  // namespace
}  // namespace multi_token
