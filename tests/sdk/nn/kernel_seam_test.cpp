// Two who want to compute in place of one layer: they chain, or the second is refused by name.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <titan/nn/attention.h>
#include <titan/nn/head.h>
#include <titan/nn/linear.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/nn/layer_fixture.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::materialize;

/// What the layer computes, times a factor; without `inner` it computes itself.
class ScaledLinear final : public LinearKernel {
 public:
  explicit ScaledLinear(double factor, std::unique_ptr<LinearKernel> inner = nullptr)
      : factor_(factor), inner_(std::move(inner)) {}
  at::Tensor matmul(const at::Tensor& x, Parameter& weight) override {
    return (inner_ ? inner_->matmul(x, weight) : at::linear(x, weight.value())) * factor_;
  }

 private:
  double factor_;
  std::unique_ptr<LinearKernel> inner_;
};

class ZeroAttention final : public AttentionKernel {
 public:
  at::Tensor attend(const at::Tensor& q, const at::Tensor&, const at::Tensor&,
                    const Batch&) override {
    return q * 0;
  }
};

class ZeroHead final : public HeadKernel {
 public:
  at::Tensor logits(const at::Tensor& x, Parameter&) override { return x * 0; }
  at::Tensor loss_sum(const at::Tensor& x, Parameter&, const at::Tensor&) override {
    return x.sum() * 0;
  }
};

/// The layer takes a kernel of "one" and refuses that of "two".
template <class Kernel, class L>
void expect_second_is_refused(L& layer, const std::string& place) {
  layer.set_kernel("one", std::make_unique<Kernel>());
  const Error error = error_of([&] { layer.set_kernel("two", std::make_unique<Kernel>()); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), place + " is computed by one already, and two would replace"));
  EXPECT_EQ(layer.kernel_takers().text(), "one");
}

class PlainLinear final : public LinearKernel {
 public:
  at::Tensor matmul(const at::Tensor& x, Parameter& weight) override {
    return at::linear(x, weight.value());
  }
};

TEST(KernelSeam, RefusesASecondReplacementByBothNames) {
  Linear linear(3, 5, WeightLayout::column, Init::normal(0, 1));
  linear.set_names("layers.0.attention.wq");
  expect_second_is_refused<PlainLinear>(linear, "'layers.0.attention.wq'");
  Attention attention({.dim = 32,
                       .num_heads = 4,
                       .num_kv_heads = 2,
                       .head_dim = 8,
                       .input_init = Init::normal(0, 1),
                       .output_init = Init::normal(0, 1)},
                      nullptr);
  attention.set_names("layers.0.attention");
  expect_second_is_refused<ZeroAttention>(attention, "'layers.0.attention'");
  OutputHead head({.dim = 4, .vocab_size = 11, .init = Init::normal(0, 1)});
  expect_second_is_refused<ZeroHead>(head, "the output head");
}

TEST(KernelSeam, ChainsWhatGoesAroundInTheOrderOfComing) {
  at::NoGradGuard no_grad;
  Linear linear(3, 5, WeightLayout::column, Init::normal(0, 1));
  materialize(linear);
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor plain = linear(x, Batch()).clone();
  EXPECT_TRUE(linear.has_plain_kernel());
  linear.set_kernel("base", std::make_unique<ScaledLinear>(2));
  for (const auto& [taker, factor] : {std::pair{"inner", 4.0}, {"outer", 8.0}})
    linear.wrap_kernel(taker, [factor = factor](std::unique_ptr<LinearKernel> inner) {
      return std::make_unique<ScaledLinear>(factor, std::move(inner));
    });
  EXPECT_TRUE(titan::testing::same_bits(linear(x, Batch()), plain * 64));
  EXPECT_EQ(linear.kernel_takers().text(), "base, inner around it, outer around it");
  EXPECT_FALSE(linear.has_plain_kernel());
}

TEST(KernelSeam, RefusesToReplaceWhatAnotherGoesAround) {
  Linear linear(3, 5, WeightLayout::column, Init::normal(0, 1));
  linear.set_names("wq");
  linear.wrap_kernel("adapter", [](std::unique_ptr<LinearKernel> inner) {
    return std::make_unique<ScaledLinear>(2, std::move(inner));
  });
  const Error error =
      error_of([&] { linear.set_kernel("narrow", std::make_unique<ScaledLinear>(2)); });
  EXPECT_TRUE(holds(error.what(),
                    "narrow would replace what adapter goes around in 'wq': narrow has to come "
                    "before adapter"));
}

class PlainGather final : public GatherTransform {
 public:
  at::ScalarType wire_dtype() const override { return at::kFloat; }
  at::Tensor encode(const at::Tensor& shard) override { return shard; }
  void decode(const at::Tensor& wire, const at::Tensor& value) override { value.copy_(wire); }
};

TEST(KernelSeam, OfTheGatherRefusesASecondTakerToo) {
  Parameter weight({2, 2}, Init::constant(0));
  weight.set_name("wq.weight");
  weight.set_gather_transform("one", std::make_shared<PlainGather>());
  const Error error =
      error_of([&] { weight.set_gather_transform("two", std::make_shared<PlainGather>()); });
  EXPECT_TRUE(holds(error.what(), "how 'wq.weight' is gathered is up to one already, and two"));
}

}  // namespace
}  // namespace titan::nn
