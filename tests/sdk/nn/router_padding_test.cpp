// Padding is not counted as load: padded rows give the same losses and bias updates as their tokens
// alone.
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/router.h>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::nn {
namespace {

constexpr int64_t kPaddedExperts = 4, kPaddedLength = 9;
constexpr double kPaddedRate = 0.5;
const std::vector<int64_t> kTokensOfRows = {9, 5, 1, 0};

struct BiasedRouter {
  explicit BiasedRouter(double balance_loss = 0.25) {
    bias->set_name("bias");
    bias->materialize(c10::kCPU, at::kFloat, 1);
    router = std::make_unique<Router>(RouterOptions{.dim = 4,
                                                    .num_experts = kPaddedExperts,
                                                    .top_k = 2,
                                                    .balance_rate = kPaddedRate,
                                                    .balance_loss = balance_loss,
                                                    .init = Init::normal(0, 2)},
                                      bias);
    router->set_names("m");
    router->gate().weight().materialize(c10::kCPU, at::kDouble, 21);
    router->begin_run();
  }
  std::shared_ptr<Parameter> bias =
      std::make_shared<Parameter>(std::vector<int64_t>{kPaddedExperts}, Init::constant(0));
  std::unique_ptr<Router> router;
};

at::Tensor tokens_of_rows() {
  const auto rows = static_cast<int64_t>(kTokensOfRows.size());
  return at::sin(at::arange(rows * kPaddedLength * 4, at::kDouble) * 1.7)
      .view({rows, kPaddedLength, 4});
}

Batch padded_batch() {
  Batch batch;
  batch.is_padding =
      at::arange(kPaddedLength).unsqueeze(0).ge(at::tensor(kTokensOfRows, at::kLong).unsqueeze(1));
  return batch;
}

struct Balanced {
  double loss = 0;
  at::Tensor gate_gradient, bias;
};

Balanced balanced_by(const std::vector<std::pair<at::Tensor, Batch>>& microbatches) {
  const dist::Mesh mesh;
  BiasedRouter biased;
  biased.router->connect(mesh);
  const auto losses = std::make_shared<AuxiliaryLosses>(0.125);
  for (const auto& [x, given] : microbatches) {
    Batch batch = given;
    batch.auxiliary_losses = losses;
    (biased.router->route(x, batch).weights.sum() * 0).backward();
  }
  biased.router->commit(Step());
  return {*losses->sum(), biased.router->gate().weight().grad(), biased.bias->value().clone()};
}

TEST(RouterPadding, IsNoPartOfTheLoad) {
  const at::Tensor x = tokens_of_rows();
  std::vector<std::pair<at::Tensor, Batch>> alone;  // each row without its padding
  for (size_t row = 0; row < kTokensOfRows.size(); ++row)
    if (kTokensOfRows[row] > 0)
      alone.emplace_back(x.narrow(0, static_cast<int64_t>(row), 1).narrow(1, 0, kTokensOfRows[row]),
                         Batch());
  const Balanced expected = balanced_by(alone), found = balanced_by({{x, padded_batch()}});
  EXPECT_NEAR(found.loss / expected.loss, 1, 1e-14);
  EXPECT_TRUE(at::allclose(found.gate_gradient, expected.gate_gradient, 1e-12, 1e-15));
  EXPECT_TRUE(at::equal(found.bias, expected.bias)) << found.bias << expected.bias;
  const Balanced counted = balanced_by({{x, Batch()}});
  EXPECT_GT(std::abs(counted.loss / expected.loss - 1), 1e-3) << "padding would show";
  EXPECT_FALSE(at::equal(counted.bias, expected.bias)) << "padding would show";
}

/// Ranks of tensor parallelism that hold parts of each row count only the tokens of their part.
TEST(RouterPadding, IsFoundInPartsOfRows) {
  const at::Tensor x = tokens_of_rows().narrow(1, 0, 8);
  Batch whole = padded_batch();
  whole.is_padding = whole.is_padding.narrow(1, 0, 8);
  const auto moved = [&](const dist::Mesh& mesh, const at::Tensor& here, const Batch& batch) {
    BiasedRouter biased(/*balance_loss=*/0);
    biased.router->connect(mesh);
    biased.router->route(here, batch);
    biased.router->commit(Step());
    return biased.bias->value().clone();
  };
  const at::Tensor expected = moved(dist::Mesh(), x, whole);
  titan::testing::run_ranks({.tp = 2}, [&](const dist::Mesh& mesh) {
    Batch batch = whole;
    batch.places.part = {.number = mesh.group("tp").rank(), .count = 2};
    EXPECT_TRUE(
        at::equal(moved(mesh, x.narrow(1, 4 * batch.places.part.number, 4), batch), expected));
  });
  EXPECT_FALSE(at::equal(moved(dist::Mesh(), x, Batch()), expected)) << "padding would show";
}

}  // namespace
}  // namespace titan::nn
