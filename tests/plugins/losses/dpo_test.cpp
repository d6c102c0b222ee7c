// The loss `dpo` of given log-likelihoods. tests/referee/dpo_referee.py computed the golden values
// with TRL's own code.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/sequence_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/plugins/registry.h"

namespace titan::dpo_test {
namespace {

using at::Tensor;

constexpr int64_t kSeqLen = 24, kPrompt = 2;
using Lengths = std::vector<std::vector<int64_t>>;  // lengths of the documents of each row
const Lengths kLengths = {{5, 7, 6, 4}, {8, 6}};

struct Golden {
  std::string variant;
  double beta, smoothing;
  bool is_free;
  double loss, chosen, rejected;
  std::vector<double> gradients;  // at one token of each document
};
const std::vector<Golden> kGolden = {
    {"sigmoid",
     0.1,
     0.0,
     false,
     2.0739037053083,
     -0.381299041651227,
     -0.549176533974532,
     {-0.0382815138980109, 0.0382815138980109, -0.0433342644185055, 0.0433342644185055,
      -0.0640599009759013, 0.0640599009759013}},
    {"sigmoid",
     0.5,
     0.2,
     false,
     3.43197217329672,
     -1.90649520825613,
     -2.74588266987266,
     {0.0579569821051279, -0.0579569821051279, -0.00366211751675943, 0.00366211751675943,
      -0.373670571339812, 0.373670571339812}},
    {"sigmoid",
     0.3,
     0.0,
     true,
     2.15844506669918,
     -5.12340882866509,
     -5.17599182189383,
     {-0.124021861795297, 0.124021861795297, -0.117624859399348, 0.117624859399348,
      -0.202828563325489, 0.202828563325489}},
    {"ipo",
     0.1,
     0.0,
     false,
     71.506682301915,
     -0.0410432004132575,
     -0.094368771396457,
     {-2.72654161297588, 1.63592496778553, -2.25149415478487, 4.50298830956974, -1.95798118704481,
      2.93697178056722}},
    {"ipo",
     0.7,
     0.0,
     true,
     2.13508363317601,
     -2.77517417602297,
     -3.4178618494475,
     {-0.82046191318818, 0.492277147912908, 0.279981923713449, -0.559963847426898,
      -0.184667624250814, 0.277001436376221}},
    {"hinge",
     0.4,
     0.0,
     false,
     3.31185984705734,
     -1.52519616660491,
     -2.19670613589813,
     {0, 0, 0, 0, -0.4, 0.4}},
};

std::shared_ptr<SequenceLoss> make_loss(const Value& options) {
  const std::shared_ptr<Loss> loss = testing::create<Loss>("dpo", options, {.vocab_size = 100});
  return std::dynamic_pointer_cast<SequenceLoss>(loss);
}

/// The rest of a row is its own document. It has no targets, and neither have the first tokens of
/// each document.
Batch batch_of(const Lengths& lengths) {
  const auto rows = static_cast<int64_t>(lengths.size());
  Batch batch{.labels = at::full({rows, kSeqLen}, Batch::kIgnoredLabel, at::kLong),
              .documents = at::full({rows, kSeqLen}, 0, at::kInt)};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t first = 0;
    int32_t document = 0;
    for (const int64_t length : lengths[static_cast<size_t>(row)]) {
      batch.documents[row].narrow(0, first, length).fill_(document++);
      if (length > kPrompt) batch.labels[row].narrow(0, first + kPrompt, length - kPrompt).fill_(7);
      first += length;
    }
    batch.documents[row].narrow(0, first, kSeqLen - first).fill_(document);
  }
  return batch;
}

/// -1.2 - f(position), 0 where there is no target.
Tensor values(const Batch& batch, const Tensor& wave) {
  return (-1.2 - wave)
      .view(batch.labels.sizes())
      .masked_fill(batch.labels.eq(Batch::kIgnoredLabel), 0);
}

struct Inputs {
  Batch batch;
  Tensor policy;
};
Inputs golden_inputs() {
  Inputs in{.batch = batch_of(kLengths)};
  const Tensor place = at::arange(2 * kSeqLen, at::kDouble);
  in.policy = values(in.batch, (0.731 * place).sin()).requires_grad_();
  in.batch.reference = values(in.batch, (0.317 * place).cos());
  return in;
}

TEST(Dpo, IsWhatTrlComputes) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.variant + " " + std::to_string(golden.beta));
    const auto loss = make_loss(Value::map({{"variant", golden.variant},
                                            {"beta", golden.beta},
                                            {"label_smoothing", golden.smoothing},
                                            {"reference_free", golden.is_free}}));
    Inputs in = golden_inputs();
    if (golden.is_free) in.batch.reference = Tensor();
    const RowsLoss found = loss->of_sequences(in.policy, in.batch);
    EXPECT_NEAR(found.sum.item<double>(), golden.loss, 1e-11 * golden.loss);
    EXPECT_NEAR(found.parts.at(0).item<double>(), golden.chosen, 1e-11);
    EXPECT_NEAR(found.parts.at(1).item<double>(), golden.rejected, 1e-11);
    EXPECT_NEAR(found.parts.at(2).item<double>(), golden.chosen - golden.rejected, 1e-11);
    const Tensor gradient = torch::autograd::grad({found.sum}, {in.policy})[0].flatten();
    size_t document = 0;
    for (size_t row = 0; row < kLengths.size(); ++row) {
      int64_t first = static_cast<int64_t>(row) * kSeqLen;
      for (const int64_t length : kLengths[row]) {
        for (int64_t token = first + kPrompt; token < first + length; ++token)
          EXPECT_NEAR(gradient[token].item<double>(), golden.gradients.at(document), 1e-11);
        first += length;
        ++document;
      }
    }
  }
}

TEST(Dpo, NamesItsPartsAsTrlDoes) {
  EXPECT_EQ(make_loss(Value::map())->part_names(),
            (std::vector<std::string>{"rewards/chosen", "rewards/rejected", "rewards/margins",
                                      "rewards/accuracies", "logps/chosen", "logps/rejected"}));
}

TEST(Dpo, CountsHowOftenTheChosenAnswerGained) {
  Inputs in = golden_inputs();
  const RowsLoss found = make_loss(Value::map())->of_sequences(in.policy, in.batch);
  // gradients of the sigmoid are larger than beta / 2 where the rejected answer gained
  double expected = 0;
  for (const size_t pair : {0u, 2u, 4u}) expected += kGolden[0].gradients[pair] > -0.05;
  EXPECT_EQ(found.parts.at(3).item<double>(), expected);
  EXPECT_EQ(expected, 2);
}

TEST(Dpo, AddsTheChosenAnswersOwnLossPerToken) {
  Inputs in = golden_inputs();
  const double alone =
      make_loss(Value::map())->of_sequences(in.policy, in.batch).sum.item<double>();
  const double more = make_loss(Value::map({{"rpo_alpha", 0.25}}))
                          ->of_sequences(in.policy, in.batch)
                          .sum.item<double>();
  double expected = 0;
  for (const auto& [row, first, length] : {std::array<int64_t, 3>{0, 0, 5}, {0, 12, 6}, {1, 0, 8}})
    expected -=
        0.25 * in.policy[row].narrow(0, first + kPrompt, length - kPrompt).mean().item<double>();
  EXPECT_NEAR(more - alone, expected, 1e-12);
}

TEST(Dpo, HasNoTermsWhereThereAreNoTargets) {
  const auto loss = make_loss(Value::map());
  EXPECT_EQ(loss->num_terms(batch_of(kLengths)), 3);
  const Batch none = batch_of({{}, {2, 2}});
  EXPECT_EQ(loss->num_terms(none), 0);
  Inputs in{.batch = none, .policy = at::full({2, kSeqLen}, 0.0, at::kDouble).requires_grad_()};
  in.batch.reference = in.policy.detach();
  const RowsLoss found = loss->of_sequences(in.policy, in.batch);
  EXPECT_EQ(found.sum.item<double>(), 0);
  const Tensor gradient = torch::autograd::grad({found.sum}, {in.policy})[0];
  EXPECT_EQ(gradient.abs().max().item<double>(), 0);
}

TEST(Dpo, RefusesAnAnswerWithoutItsPartner) {
  const auto message_of = [](const Lengths& lengths) -> std::string {
    try {
      make_loss(Value::map())->num_terms(batch_of(lengths));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.message();
    }
    return "";
  };
  EXPECT_NE(message_of({{5, 7, 6}}).find("row 0 of a batch holds a chosen answer as document 2"),
            std::string::npos);
  EXPECT_NE(message_of({{}, {2, 7}}).find("row 1 of a batch holds a rejected answer as document 1"),
            std::string::npos);
}

TEST(Dpo, RefusesSmoothingWithoutAMeaning) {
  try {
    make_loss(Value::map({{"variant", "ipo"}, {"label_smoothing", 0.1}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(error.message().find("'label_smoothing' = 0.1"), std::string::npos);
  }
}

}  // namespace
}  // namespace titan::dpo_test
