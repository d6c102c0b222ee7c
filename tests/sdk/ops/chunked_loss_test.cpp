// The driver of chunked losses, bitwise equal to the same sums written without chunks.
#include <titan/ops/chunked_loss.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/mm.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::chunked_loss_test {
namespace {

/// Σ logits² / 2, whose gradient is the logits: rows with an ignored label do not count.
Tensor half_squares(const Tensor& logits, const Tensor& labels, bool gradient) {
  const Tensor counted = labels.ne(kIgnoredLabel).to(logits.scalar_type()).unsqueeze(1);
  const Tensor loss = (logits.square() * counted).sum(at::kDouble) / 2;
  if (gradient) logits.mul_(counted);
  return loss;
}

/// Loss, dx and dweight of all rows, chunk by chunk; each sum starts at zero.
Tensors plainly(const Tensor& x, const Tensor& weight, const Tensor& labels, int64_t rows) {
  const at::NoGradGuard no_grad;
  const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  Tensor loss = at::zeros({}, at::kDouble), dx = at::zeros_like(x);
  Tensor dweight = at::zeros(weight.sizes(), wide);
  for (int64_t first = 0; first < x.size(0); first += rows) {
    const int64_t count = std::min(rows, x.size(0) - first);
    const Tensor in = x.narrow(0, first, count);
    const Tensor logits = ops::mm(in, weight.t()).to(wide);
    loss += half_squares(logits, labels.narrow(0, first, count), true);
    const Tensor dlogits = logits.to(x.scalar_type());
    dx.narrow(0, first, count).copy_(ops::mm(dlogits, weight));
    if (x.scalar_type() == wide)
      dweight.addmm_(dlogits.t(), in);
    else
      dweight += ops::mm(dlogits.t(), in);
  }
  return {loss.to(wide), dx, dweight.to(x.scalar_type())};
}

Tensor labels_of(int64_t n) {
  const Tensor labels = random_ids(37, {n});
  for (int64_t i = 0; i < n; i += 3) labels[i].fill_(kIgnoredLabel);
  return labels;
}

TEST(ChunkedLoss, IsTheSumOverChunksToTheBit) {
  for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    for (const int64_t n : {1, 5, 12, 13, 50})
      for (const int64_t rows : {1, 5, 13, 64}) {
        SCOPED_TRACE(std::string(c10::toString(type)) + " " + std::to_string(n) + " " +
                     std::to_string(rows));
        const Tensors in = leaves({random({n, 24}), random({37, 24})}, type);
        const Tensor labels = labels_of(n);
        const Tensors expected = plainly(in[0], in[1], labels, rows);
        const Tensor loss = chunked_loss(in[0], in[1], labels, rows, half_squares);
        EXPECT_EQ(loss.scalar_type(), type == at::kDouble ? at::kDouble : at::kFloat);
        EXPECT_TRUE(loss.detach().equal(expected[0]));
        const Tensors gradients = torch::autograd::grad({loss}, in);
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(gradients[i].equal(expected[i + 1])) << i;
      }
}

TEST(ChunkedLoss, AsksForGradientsWhereSomebodyWantsThem) {
  const Tensors in = leaves({random({9, 4}), random({7, 4})}, at::kFloat);
  std::vector<bool> asked;
  const ChunkLoss loss = [&](const Tensor& logits, const Tensor& labels, bool gradient) {
    asked.push_back(gradient);
    EXPECT_FALSE(logits.requires_grad());
    return half_squares(logits, labels, gradient);
  };
  chunked_loss(in[0], in[1], labels_of(9), 4, loss);
  EXPECT_EQ(asked, (std::vector<bool>{true, true, true}));
  const at::NoGradGuard no_grad;
  chunked_loss(in[0], in[1], labels_of(9), 4, loss);
  EXPECT_EQ(asked, (std::vector<bool>{true, true, true, false, false, false}));
}

TEST(ChunkedLoss, CutsRowsByTheNumbersAlone) {
  EXPECT_EQ(chunk_rows(0, 1000, 1 << 20), 1);
  EXPECT_EQ(chunk_rows(4000, 1000, 4000 * 1000), 1000);
  EXPECT_EQ(chunk_rows(4001, 1000, 4000 * 1000), 801);  // five chunks, equal except the last
  EXPECT_EQ(chunk_rows(4000, 1 << 20, 1), 500);         // eight chunks of at most 512
}

TEST(ChunkedLoss, CannotBeDifferentiatedTwice) {
  const Tensors in = leaves({random({5, 3}), random({7, 3})}, at::kFloat);
  const Tensor loss = chunked_loss(in[0], in[1], labels_of(5), 4, half_squares);
  EXPECT_THROW(torch::autograd::grad({loss}, in, {}, std::nullopt, true), Error);
}

}  // namespace
}  // namespace titan::ops::testing::chunked_loss_test
