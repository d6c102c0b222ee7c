// The loss `cross_entropy` in the output head against ATen's on whole logits, on one rank and with
// a sharded vocabulary.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/loss.h>
#include <titan/nn/head.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan {
namespace {

using at::Tensor;

constexpr int64_t kDim = 24, kVocab = 131;

struct Case {
  double smoothing = 0, z_loss = 0, cap = 0;
};
const std::vector<Case> kCases = {{},
                                  {.smoothing = 0.1},
                                  {.z_loss = 1e-2},
                                  {.cap = 2},
                                  {.smoothing = 0.2, .z_loss = 1e-3, .cap = 3}};

std::unique_ptr<Loss> make_loss(const Case& c) {
  return testing::create<Loss>(
      "cross_entropy",
      Value::map(
          {{"label_smoothing", c.smoothing}, {"z_loss", c.z_loss}, {"logit_softcap", c.cap}}),
      {.vocab_size = kVocab});
}

/// ATen's loss of whole logits.
Tensor reference(const Tensor& logits, const Tensor& labels, const Case& c) {
  const Tensor z = c.cap > 0 ? c.cap * (logits / c.cap).tanh() : logits;
  const Tensor ce =
      at::cross_entropy_loss(z, labels, {}, at::Reduction::Sum, Batch::kIgnoredLabel, c.smoothing);
  const Tensor counted = labels.ne(Batch::kIgnoredLabel).to(z.scalar_type());
  return ce + c.z_loss * (at::logsumexp(z, 1).square() * counted).sum();
}

/// 300 tokens: three chunks for any large vocabulary.
Batch some_labels(int64_t n) {
  const Tensor labels = (at::arange(n) * 53 + 7).remainder(kVocab);
  return {
      .labels =
          labels.masked_fill(at::arange(n).remainder(5).eq(1), Batch::kIgnoredLabel).view({1, n})};
}

Tensor some_x(int64_t n) {
  const Tensor x = (at::arange(n * kDim, at::kDouble) * 0.7311).sin().mul_(3);
  return x.view({1, n, kDim}).requires_grad_();
}

std::unique_ptr<nn::OutputHead> make_head(const nn::HeadLoss& loss) {
  auto head = std::make_unique<nn::OutputHead>(
      nn::OutputHeadOptions{.dim = kDim, .vocab_size = kVocab, .init = nn::Init::normal(0, 0.5)});
  head->set_loss(loss);
  head->set_names("");
  head->visit_parameters([](nn::Parameter& p) { p.materialize(c10::kCPU, at::kDouble, 5); });
  return head;
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance) {
  EXPECT_LE((found - expected).abs().max().item<double>(),
            tolerance * expected.abs().max().item<double>());
}

TEST(CrossEntropyLoss, IsWhatAtenComputesOfWholeLogits) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::to_string(c.smoothing) + " " + std::to_string(c.z_loss));
    const auto head = make_head({.loss = make_loss(c)});
    const Batch batch = some_labels(300);
    const Tensor x = some_x(300);
    nn::Parameter& weight = head->weight();
    const std::vector<Tensor> leaves = {x, weight.value()};
    const Tensor loss = (*head)(x, batch);
    const auto gradients = torch::autograd::grad({loss}, leaves);
    const Tensor logits = at::matmul(head->norm()(x, batch)[0], weight.value().t());
    const Tensor expected = reference(logits, batch.labels[0], c);
    const auto expected_gradients = torch::autograd::grad({expected}, leaves);
    EXPECT_NEAR(loss.item<double>() / expected.item<double>(), 1, 1e-13);
    for (size_t i = 0; i < leaves.size(); ++i)
      expect_near(gradients[i], expected_gradients[i], 1e-12);
    const at::NoGradGuard no_grad;
    EXPECT_EQ((*head)(x, batch).item<double>(), loss.item<double>()) << "without a graph";
  }
}

TEST(CrossEntropyLoss, GivesItsPartsOfEachChunk) {
  const auto loss = make_loss({.smoothing = 0.1, .z_loss = 1e-2});
  EXPECT_EQ(loss->part_names(), (std::vector<std::string>{"nll", "z_loss"}));
  EXPECT_EQ(make_loss({})->part_names(), (std::vector<std::string>{"nll"}));
  Tensor total = at::zeros({2}, at::kDouble);
  const auto head = make_head({.loss = make_loss({.smoothing = 0.1, .z_loss = 1e-2}),
                               .take_parts = [&](const std::vector<Tensor>& parts) {
                                 for (size_t i = 0; i < 2; ++i) {
                                   EXPECT_FALSE(parts[i].requires_grad());
                                   total[static_cast<int64_t>(i)] += parts[i];
                                 }
                               }});
  const Batch batch = some_labels(300);
  const Tensor x = some_x(300);
  (*head)(x, batch);
  const at::NoGradGuard no_grad;
  const Tensor logits = (*head)(x, {})[0].to(at::kDouble), labels = batch.labels[0];
  const Tensor exact = at::matmul(head->norm()(x, batch)[0], head->weight().value().t());
  EXPECT_NEAR(total[0].item<double>() / reference(exact, labels, {}).item<double>(), 1, 1e-12);
  const double z =
      (reference(exact, labels, {.z_loss = 1e-2}) - reference(exact, labels, {})).item<double>();
  EXPECT_NEAR(total[1].item<double>() / z, 1, 1e-9);
}

TEST(CrossEntropyLoss, NamesALabelOutsideOfTheVocabulary) {
  const auto head = make_head({.loss = make_loss({})});
  Batch batch = some_labels(9);
  batch.labels.view({-1})[3] = kVocab;
  try {
    (*head)(some_x(9), batch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(error.message().find("label 131 of token 3"), std::string::npos) << error.message();
  }
}

TEST(CrossEntropyLoss, IsTheSameWhereTheVocabularyIsCut) {
  const Case c = {.smoothing = 0.2, .z_loss = 1e-2, .cap = 3};
  const tensor_test::MakeLayers layers = [&] {
    std::vector<Layer> made = tensor_test::small_llama(/*is_tied=*/false)();
    auto& head = dynamic_cast<nn::OutputHead&>(*made.back().module);
    head.set_loss({.loss = make_loss(c)});
    return made;
  };
  const tensor_test::StepResult alone = tensor_test::run_alone(layers);
  for (const tensor_test::TensorCase& cut : tensor_test::all_tensor_cases()) {
    SCOPED_TRACE(cut.text());
    tensor_test::expect_equal_steps(tensor_test::run_cut(layers, cut), alone);
  }
}

/// A loss that violates its contract.
class Wrong final : public Loss {
 public:
  std::vector<std::string> part_names() const override { return {"one"}; }
  RowsLoss of_rows(const Tensor& logits, const Tensor&) override {
    return {.sum = gives_rows ? logits.sum(1) : logits.sum(), .parts = {}};
  }
  bool gives_rows = false;
};

TEST(CrossEntropyLoss, OthersAreToldWhatTheyOweTheHead) {
  const auto loss = std::make_shared<Wrong>();
  const auto head = make_head({.loss = loss});
  const auto error_of = [&]() -> std::string {
    try {
      (*head)(some_x(9), some_labels(9));
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(error_of(), "the loss gives 0 parts and names 1");
  loss->gives_rows = true;
  EXPECT_EQ(error_of(), "the loss gives no single number for 9 rows");
}

}  // namespace
}  // namespace titan
