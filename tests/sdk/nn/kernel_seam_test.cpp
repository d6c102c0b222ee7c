// Two plugins that want to compute one layer: they chain, or the second is refused by name.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/attention.h>
#include <titan/nn/feed_forward.h>
#include <titan/nn/head.h>
#include <titan/nn/linear.h>
#include <titan/nn/rms_norm.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/nn/layer_fixture.h"

namespace titan::nn {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::materialize;

/// The layer's result times a factor. Without `inner` this kernel computes the layer itself.
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
  at::Tensor loss_sum_by(const ops::ChunkLoss&, const at::Tensor& x, Parameter&,
                         const at::Tensor&) override {
    return x.sum() * 0;
  }
};

class HalvedNorm final : public RmsNormKernel {
 public:
  explicit HalvedNorm(std::unique_ptr<RmsNormKernel> inner = nullptr) : inner_(std::move(inner)) {}
  at::Tensor normalize(const at::Tensor& x, Parameter& weight, double eps) override {
    return (inner_ ? inner_->normalize(x, weight, eps) : x * weight.value() + eps) / 2;
  }

 private:
  std::unique_ptr<RmsNormKernel> inner_;
};

class ProductGate final : public SwigluKernel {
 public:
  at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) override { return gate * up; }
};

/// The layer's formula, composed of ATen operations.
class WholeFeedForward final : public FeedForwardKernel {
 public:
  at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& w, const Batch&) override {
    return at::linear(at::silu(at::linear(x, w.w1.value())) * at::linear(x, w.w3.value()),
                      w.w2.value());
  }
};

class DoubledFeedForward final : public FeedForwardKernel {
 public:
  explicit DoubledFeedForward(std::unique_ptr<FeedForwardKernel> inner)
      : inner_(std::move(inner)) {}
  at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& w,
                          const Batch& batch) override {
    return inner_->feed_forward(x, w, batch) * 2;
  }

 private:
  std::unique_ptr<FeedForwardKernel> inner_;
};

class NoRotation final : public RopeKernel {
 public:
  std::pair<at::Tensor, at::Tensor> rotate(const at::Tensor& q, const at::Tensor& k,
                                           const RopeTables&, const at::Tensor&) override {
    return {q, k};
  }
};

FeedForward small_feed_forward_layer() {
  return FeedForward({.dim = 6,
                      .hidden_dim = 10,
                      .gate_init = Init::normal(0, 0.5),
                      .output_init = Init::normal(0, 0.5)});
}

/// The layer accepts a kernel of "one" and refuses that of "two".
template <class Kernel, class L>
void expect_second_is_refused(L& layer, const std::string& place) {
  layer.set_kernel("one", std::make_unique<Kernel>());
  const Error error = error_of([&] { layer.set_kernel("two", std::make_unique<Kernel>()); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), place + " is computed by one already, and two would replace"));
  EXPECT_EQ(layer.kernel_owners().text(), "one");
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
  RmsNorm norm(4, 1e-5);
  norm.set_names("layers.0.ffn_norm");
  expect_second_is_refused<HalvedNorm>(norm, "'layers.0.ffn_norm'");
  FeedForward feed_forward = small_feed_forward_layer();
  feed_forward.set_names("layers.0.feed_forward");
  expect_second_is_refused<WholeFeedForward>(feed_forward, "'layers.0.feed_forward'");
  Rope rope(8, {});
  expect_second_is_refused<NoRotation>(rope, "the rotation of positions");
}

TEST(KernelSeam, OfANormalisationIsReplacedAndWrapped) {
  at::NoGradGuard no_grad;
  RmsNorm norm(3, 0.5);
  materialize(norm);
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor plain = norm(x, Batch()).clone();
  norm.wrap_kernel("halved", [](std::unique_ptr<RmsNormKernel> inner) {
    return std::make_unique<HalvedNorm>(std::move(inner));
  });
  EXPECT_TRUE(titan::testing::same_bits(norm(x, Batch()), plain / 2));
  RmsNorm other(3, 0.5);
  materialize(other);
  other.set_kernel("halved", std::make_unique<HalvedNorm>());
  EXPECT_TRUE(titan::testing::same_bits(other(x, Batch()), x * 0.75));
  EXPECT_EQ(other.computed_by(), "halved");
}

TEST(KernelSeam, OfAFeedForwardIsOfItsGateOrOfTheWhole) {
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 6});
  FeedForward plain = small_feed_forward_layer(), whole = small_feed_forward_layer(),
              gated = small_feed_forward_layer();
  for (FeedForward* layer : {&plain, &whole, &gated}) materialize(*layer);
  const at::Tensor expected = plain(x, Batch()).clone();
  whole.set_kernel("fused", std::make_unique<WholeFeedForward>());
  whole.wrap_kernel("twice", [](std::unique_ptr<FeedForwardKernel> inner) {
    return std::make_unique<DoubledFeedForward>(std::move(inner));
  });
  EXPECT_LT(titan::testing::max_difference(whole(x, Batch()), expected * 2), 1e-5);
  EXPECT_EQ(whole.computed_by(), "fused, twice around it");
  plain.wrap_kernel("twice", [](std::unique_ptr<FeedForwardKernel> inner) {
    return std::make_unique<DoubledFeedForward>(std::move(inner));
  });
  EXPECT_TRUE(titan::testing::same_bits(plain(x, Batch()), expected * 2));

  gated.set_swiglu_kernel("bilinear", std::make_unique<ProductGate>());
  const FeedForwardWeights w = gated.weights();
  EXPECT_LT(
      titan::testing::max_difference(
          gated(x, Batch()),
          at::linear(at::linear(x, w.w1.value()) * at::linear(x, w.w3.value()), w.w2.value())),
      1e-5);
  EXPECT_EQ(gated.computed_by(), "bilinear in its gate");
}

TEST(KernelSeam, OfAWholeLayerLeavesNobodyBehindInItsParts) {
  FeedForward layer = small_feed_forward_layer();
  layer.set_names("ffn");
  Linear* w1 = nullptr;
  layer.visit_modules([&](const std::string& path, Module& module) {
    if (path == "w1") w1 = dynamic_cast<Linear*>(&module);
  });
  const auto adapt = [&] {
    w1->wrap_kernel("adapter", [](std::unique_ptr<LinearKernel> inner) {
      return std::make_unique<ScaledLinear>(2, std::move(inner));
    });
  };
  layer.set_kernel("fused", std::make_unique<WholeFeedForward>());
  EXPECT_EQ(w1->computed_by(), "fused");
  EXPECT_FALSE(w1->has_plain_kernel());
  EXPECT_TRUE(holds(error_of(adapt).what(),
                    "adapter would wrap 'ffn.w1', which does not run: fused computes it "
                    "together with the layer that holds it"));
  EXPECT_TRUE(
      holds(error_of([&] { w1->set_kernel("narrow", std::make_unique<PlainLinear>()); }).what(),
            "'ffn.w1' is computed by fused already, and narrow would replace that"));
  EXPECT_TRUE(holds(
      error_of([&] { layer.set_swiglu_kernel("gate", std::make_unique<ProductGate>()); }).what(),
      "the gate of 'ffn' is computed by fused already"));

  FeedForward adapted = small_feed_forward_layer();
  adapted.set_names("ffn");
  adapted.visit_modules([&](const std::string& path, Module& module) {
    if (path == "w1") w1 = dynamic_cast<Linear*>(&module);
  });
  adapt();
  EXPECT_TRUE(holds(
      error_of([&] { adapted.set_kernel("fused", std::make_unique<WholeFeedForward>()); }).what(),
      "fused would replace the kernel that adapter wraps in 'ffn.w1'"));
}

TEST(KernelSeam, OfTheRotationServesAllThatShareIt) {
  at::NoGradGuard no_grad;
  const auto rope = std::make_shared<Rope>(8, RopeOptions{});
  Attention attention({.dim = 32,
                       .num_heads = 4,
                       .num_kv_heads = 2,
                       .head_dim = 8,
                       .input_init = Init::normal(0, 1),
                       .output_init = Init::normal(0, 1)},
                      rope);
  materialize(attention);
  const at::Tensor x = at::randn({1, 5, 32});
  const Batch at_zero{.positions = at::zeros({1, 5}, at::kLong)};  // angles of 0 rotate nothing
  const at::Tensor unturned = attention(x, at_zero).clone();
  ASSERT_FALSE(titan::testing::same_bits(attention(x, Batch()), unturned));
  attention.rope()->set_kernel("unturned", std::make_unique<NoRotation>());
  EXPECT_LT(titan::testing::max_difference(attention(x, Batch()), unturned), 1e-5);
  EXPECT_EQ(rope->kernel_owners().text(), "unturned");
}

TEST(KernelSeam, ChainsWhatGoesAroundInTheOrderOfComing) {
  at::NoGradGuard no_grad;
  Linear linear(3, 5, WeightLayout::column, Init::normal(0, 1));
  materialize(linear);
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor plain = linear(x, Batch()).clone();
  EXPECT_TRUE(linear.has_plain_kernel());
  linear.set_kernel("base", std::make_unique<ScaledLinear>(2));
  for (const auto& [owner, factor] : {std::pair{"inner", 4.0}, {"outer", 8.0}})
    linear.wrap_kernel(owner, [factor = factor](std::unique_ptr<LinearKernel> inner) {
      return std::make_unique<ScaledLinear>(factor, std::move(inner));
    });
  EXPECT_TRUE(titan::testing::same_bits(linear(x, Batch()), plain * 64));
  EXPECT_EQ(linear.kernel_owners().text(), "base, inner around it, outer around it");
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
                    "narrow would replace the kernel that adapter wraps in 'wq': apply narrow "
                    "before adapter"));
}

class PlainGather final : public GatherTransform {
 public:
  at::ScalarType wire_dtype() const override { return at::kFloat; }
  at::Tensor encode(const at::Tensor& shard) override { return shard; }
  void decode(const at::Tensor& wire, const at::Tensor& value) override { value.copy_(wire); }
};

TEST(KernelSeam, OfTheGatherRefusesASecondOwnerToo) {
  Parameter weight({2, 2}, Init::constant(0));
  weight.set_name("wq.weight");
  weight.set_gather_transform("one", std::make_shared<PlainGather>());
  const Error error =
      error_of([&] { weight.set_gather_transform("two", std::make_shared<PlainGather>()); });
  EXPECT_TRUE(holds(error.what(), "the gather of 'wq.weight' is owned by one already, and two"));
}

}  // namespace
}  // namespace titan::nn
