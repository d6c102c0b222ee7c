// The loss `distillation` of given logits against ATen's divergence.
#include <memory>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>
#include <titan/reference_loss.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/plugins/registry.h"

namespace titan::distillation_test {
namespace {

using at::Tensor;

constexpr int64_t kTokens = 40, kVocab = 31;

Tensor some_logits(double step) {
  return (at::arange(kTokens * kVocab, at::kDouble) * step).sin().mul_(2).view({kTokens, kVocab});
}

/// By ATen, without tokens that have no target.
Tensor expected_loss(const Tensor& student, const Tensor& teacher, const Tensor& labels, double t,
                     double alpha, bool is_forward) {
  const Tensor counted = labels.ne(Batch::kIgnoredLabel).nonzero().squeeze(1);
  const Tensor q = at::log_softmax(student.index_select(0, counted) / t, 1);
  const Tensor p = at::log_softmax(teacher.index_select(0, counted) / t, 1);
  const Tensor kl = is_forward ? at::kl_div(q, p, at::Reduction::Sum, /*log_target=*/true)
                               : at::kl_div(p, q, at::Reduction::Sum, /*log_target=*/true);
  return (1 - alpha) * t * t * kl + alpha * at::cross_entropy_loss(student, labels, {},
                                                                   at::Reduction::Sum,
                                                                   Batch::kIgnoredLabel);
}

TEST(Distillation, IsAtensDivergenceMixedWithItsCrossEntropy) {
  const Tensor place = at::arange(kTokens);
  const Tensor labels =
      (place * 7).remainder(kVocab).masked_fill(place.remainder(4).eq(1), Batch::kIgnoredLabel);
  for (const double t : {1.0, 2.5})
    for (const double alpha : {0.0, 0.3, 1.0})
      for (const bool is_forward : {true, false}) {
        SCOPED_TRACE(std::to_string(t) + " " + std::to_string(alpha));
        const auto loss =
            testing::create<Loss>("distillation",
                                  Value::map({{"temperature", t},
                                              {"alpha", alpha},
                                              {"divergence", is_forward ? "forward" : "reverse"}}),
                                  {.vocab_size = kVocab});
        auto& beside = dynamic_cast<DistillationLoss&>(*loss);
        const Tensor student = some_logits(0.731).requires_grad_(), teacher = some_logits(0.217);
        const RowsLoss found = beside.of_rows_beside(student, teacher, labels);
        const Tensor expected = expected_loss(student, teacher, labels, t, alpha, is_forward);
        EXPECT_NEAR(found.sum.item<double>() / expected.item<double>(), 1, 1e-12);
        const Tensor gradient = torch::autograd::grad({found.sum}, {student})[0];
        const Tensor exact = torch::autograd::grad({expected}, {student})[0];
        EXPECT_LE((gradient - exact).abs().max().item<double>(), 1e-12);
        EXPECT_EQ(loss->part_names(), (std::vector<std::string>{"nll", "kl"}));
        EXPECT_NEAR(found.parts.at(0).item<double>(),
                    expected_loss(student, teacher, labels, 1, 1, true).item<double>(), 1e-10);
      }
}

}  // namespace
}  // namespace titan::distillation_test
