// Compares the window with torch's masked attention, in double; in one block and in two.
#include "window.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace own_attention {
namespace {


constexpr int64_t kTokens = 20, kSize = 6;

struct WindowTest : ::testing::Test {
  at::Generator generator = at::detail::createCPUGenerator(4);
  Tensor random() {
    return at::randn({2, 3, kTokens, 8}, generator, at::TensorOptions().dtype(at::kDouble))
        .requires_grad_();
  }
  Tensor q = random(), k = random(), v = random(), direction = random().detach();
  Tensor sees = at::ones({kTokens, kTokens}, at::kBool).tril().triu(1 - kSize);
  Tensor expected = at::scaled_dot_product_attention(q, k, v, sees);
};

TEST_F(WindowTest, IsTorchsAttentionWithAMask) {
  const auto rule = std::make_shared<Window>(kSize);
  const Tensor out = titan::nn::attend(q, k, v, Tensor(), rule);
  EXPECT_TRUE(out.allclose(expected, 1e-12, 1e-13));
  const auto actual = torch::autograd::grad({out}, {q, k, v}, {direction});
  const auto wanted = torch::autograd::grad({expected}, {q, k, v}, {direction});
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(actual[i].allclose(wanted[i], 1e-11, 1e-12)) << i;
}

TEST_F(WindowTest, IsTheSumOfItsBlocks) {
  const Window rule(kSize);
  const Tensor places = at::arange(kTokens);
  const auto block = [&](int64_t first, int64_t count) {
    return rule.forward(q, k.narrow(2, first, count), v.narrow(2, first, count),
                        {.query_places = places, .key_places = places.narrow(0, first, count)});
  };
  const auto a = block(0, 9), b = block(9, kTokens - 9);
  const Tensor whole = at::logaddexp(a.logsumexp, b.logsumexp).unsqueeze(-1);
  const Tensor merged = a.out * (a.logsumexp.unsqueeze(-1) - whole).exp() +
                        b.out * (b.logsumexp.unsqueeze(-1) - whole).exp();
  EXPECT_TRUE(merged.allclose(expected, 1e-12, 1e-13));
}

}  // namespace
}  // namespace own_attention
