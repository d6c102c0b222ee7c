// The router's z-loss for large logits, against its formula with at::logsumexp under ATen's
// autograd.
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/auxiliary_loss.h>
#include <titan/nn/router.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::nn {
namespace {

constexpr double kCoefficient = 0.25, kGradientFactor = 0.125;

std::unique_ptr<Router> router_with_z_loss(double coefficient, at::ScalarType type) {
  auto router = std::make_unique<Router>(RouterOptions{.dim = 4,
                                                       .num_experts = 6,
                                                       .top_k = 2,
                                                       .has_bias = true,
                                                       .z_loss = coefficient,
                                                       .init = Init::normal(0, 2)},
                                         nullptr);
  router->set_names("m");
  router->visit_parameters([&](Parameter& p) {
    if (!p.is_materialized()) p.materialize(c10::kCPU, type, 21);
  });
  return router;
}

struct ZLoss {
  double sum = 0;
  std::vector<at::Tensor> gradients;  // with respect to the token, the gate and its bias
};

/// Through the router, next to a main loss without gradients.
ZLoss by_router(Router& router, const at::Tensor& x, const Batch& labelled) {
  Batch batch = labelled;
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(kGradientFactor);
  const at::Tensor nothing = router.route(x, batch).weights.sum() * 0;
  return {*batch.auxiliary_losses->sum(),
          torch::autograd::grad(
              {nothing}, {x, router.gate().weight().value(), router.gate().bias()->value()})};
}

/// `counted` (B, S): 1 for tokens that the main loss counts.
ZLoss by_formula(Router& router, const at::Tensor& x, const at::Tensor& counted) {
  const at::Tensor weight = router.gate().weight().value(), bias = router.gate().bias()->value();
  const at::Tensor z = at::logsumexp(x.matmul(weight.t()) + bias, -1);
  const at::Tensor sum = kCoefficient * (z * z * counted).sum();
  return {sum.item<double>(), torch::autograd::grad({sum * kGradientFactor}, {x, weight, bias})};
}

void expect_equal_losses(const ZLoss& found, const ZLoss& expected) {
  EXPECT_NEAR(found.sum / expected.sum, 1, 1e-14);
  for (size_t i = 0; i < expected.gradients.size(); ++i)
    EXPECT_TRUE(at::allclose(found.gradients[i], expected.gradients[i], 1e-12, 1e-14)) << i;
}

at::Tensor some_tokens() {
  return at::sin(at::arange(2 * 6 * 4, at::kDouble) * 1.7).view({2, 6, 4}).requires_grad_();
}

TEST(RouterZLoss, IsTheSquareOfLogsumexpOfTheTokensThatCount) {
  const auto router = router_with_z_loss(kCoefficient, at::kDouble);
  const at::Tensor x = some_tokens();
  Batch batch;
  batch.labels = at::arange(12).view({2, 6});
  expect_equal_losses(by_router(*router, x, batch), by_formula(*router, x, batch.labels.ge(0)));
  batch.labels = batch.labels.masked_fill(batch.labels.remainder(4).eq(1), Batch::kIgnoredLabel);
  const ZLoss expected = by_formula(*router, x, batch.labels.ge(0));
  expect_equal_losses(by_router(*router, x, batch), expected);

  // two ranks that hold halves of the sequence
  double sum = 0;
  for (const int64_t half : {0, 1}) {
    batch.places.part = {.number = half, .count = 2};
    const at::Tensor here = x.detach().narrow(1, 3 * half, 3).clone().requires_grad_();
    const ZLoss found = by_router(*router, here, batch);
    sum += found.sum;
    EXPECT_TRUE(at::allclose(found.gradients[0], expected.gradients[0].narrow(1, 3 * half, 3)));
  }
  EXPECT_NEAR(sum / expected.sum, 1, 1e-14);
}

/// Logits too large for exp in fp32.
TEST(RouterZLoss, BearsLargeLogits) {
  const auto router = router_with_z_loss(1, at::kFloat);
  const at::Tensor x = (some_tokens().detach() * 1000).to(at::kFloat).requires_grad_();
  const ZLoss found = by_router(*router, x, Batch());
  const at::Tensor logits = x.detach().matmul(router->gate().weight().value().detach().t());
  EXPECT_GT(logits.abs().max().item<double>(), 200);
  const double expected = at::logsumexp(logits.to(at::kDouble), -1).square().sum().item<double>();
  EXPECT_NEAR(found.sum / expected, 1, 1e-5);
  EXPECT_TRUE(std::isfinite(found.gradients[1].sum().item<double>()));
}

TEST(RouterZLoss, IsNotThereUnlessAskedFor) {
  const auto router = router_with_z_loss(0, at::kDouble);
  Batch batch;
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(kGradientFactor);
  router->route(some_tokens(), batch);
  EXPECT_FALSE(batch.auxiliary_losses->has_any());
}

TEST(RouterZLoss, HasShapesOnTheMetaDevice) {
  Router router({.dim = 4, .num_experts = 6, .top_k = 2, .z_loss = 1}, nullptr);
  router.set_names("m");
  const auto on_meta = at::TensorOptions().device(c10::kMeta);
  Batch batch;
  batch.labels = at::zeros({2, 6}, on_meta.dtype(at::kLong));
  batch.auxiliary_losses = std::make_shared<AuxiliaryLosses>(kGradientFactor);
  router.route(at::zeros({2, 6, 4}, on_meta.dtype(at::kFloat)), batch);
  EXPECT_TRUE(batch.auxiliary_losses->has_any());
}

}  // namespace
}  // namespace titan::nn
