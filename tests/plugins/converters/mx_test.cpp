// MXFP8 blocks and products against their definition, value by value.
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "definitions.h"
#include "layer_fixture.h"
#include "plugins/converters/mx/converter.h"
#include "tests/plugins/error_of.h"

namespace titan {
namespace {

using at::Tensor;
using mx::Blocks;
using mx::Rounding;
using quantized_test::narrowed;

TEST(MxBlocks, EqualTheirDefinition) {
  for (const Rounding rounding : {Rounding::floor, Rounding::rceil})
    for (const auto& c : quantized_test::layer_cases()) {
      const Tensor x = quantized_test::numbers({c.rows, c.in}, c.dtype, 1);
      const Blocks blocks = mx::quantize(x, rounding);
      EXPECT_EQ(blocks.scales.sizes(), at::IntArrayRef({c.rows, (c.in + 31) / 32}));
      EXPECT_TRUE(at::equal(mx::dequantize(blocks, at::kFloat), narrowed(x, rounding))) << c.in;
    }
}

TEST(MxBlocks, OfZerosInfinitiesAndOthers) {
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor x = at::full({5, 32}, 1.0f);
  x[0].zero_();
  x[1][3] = infinity;
  x[2][4] = std::numeric_limits<float>::quiet_NaN();
  x[3].fill_(448);
  x[4].fill_(500);
  const auto scale = [&](Rounding rounding, int64_t row) {
    return mx::quantize(x, rounding).scales[row][0].item<int64_t>();
  };
  EXPECT_EQ(scale(Rounding::floor, 0), 0);
  EXPECT_EQ(scale(Rounding::rceil, 0), 0);
  EXPECT_EQ(scale(Rounding::floor, 1), 247);  // 2^(128 - 8)
  EXPECT_EQ(scale(Rounding::rceil, 1), 254);
  EXPECT_EQ(scale(Rounding::floor, 2), 255);
  EXPECT_EQ(scale(Rounding::rceil, 2), 255);
  EXPECT_EQ(scale(Rounding::floor, 3), 127);
  EXPECT_EQ(scale(Rounding::rceil, 3), 127);
  EXPECT_EQ(scale(Rounding::floor, 4), 127);  // 500 is clamped to 448
  EXPECT_EQ(scale(Rounding::rceil, 4), 128);
  for (const Rounding rounding : {Rounding::floor, Rounding::rceil}) {
    const Tensor wide = mx::dequantize(mx::quantize(x, rounding), at::kFloat);
    EXPECT_TRUE(at::equal(wide[0], at::zeros({32})));
    EXPECT_TRUE(wide[2].isnan().all().item<bool>());
    EXPECT_EQ(wide[4][0].item<float>(), rounding == Rounding::floor ? 448 : 512);
  }
}

TEST(MxProducts, EqualTheirDefinition) {
  for (const char* recipe : {"mxfp8_emulated", "mxfp8_emulated_rceil"})
    for (const auto& c : quantized_test::layer_cases()) {
      const Rounding rounding = mx::find_recipe(recipe).rounding;
      quantized_test::OneLinear layer(c);
      layer.use(std::make_shared<mx::MxProducts>(mx::find_recipe(recipe)));
      const Tensor y = layer.run();
      const auto multiply = [&](const Tensor& left, const Tensor& right) {
        return at::mm(narrowed(left, rounding).to(c.dtype),
                      narrowed(right, rounding).to(c.dtype).t());
      };
      const Tensor x = layer.x.detach(), w = layer.weight(), g = layer.grad;
      EXPECT_TRUE(at::equal(y, multiply(x, w))) << recipe << c.in;
      EXPECT_TRUE(at::equal(layer.x.grad(), multiply(g, w.t()))) << recipe << c.in;
      EXPECT_TRUE(at::equal(layer.linear.weight().grad(), multiply(g.t(), x.t()))) << recipe;
    }
}

TEST(MxProducts, RunOnMeta) {
  for (const char* recipe : {"mxfp8_emulated", "mxfp8_cublas", "mxfp8_cublas_rceil"}) {
    const at::TensorOptions meta = at::TensorOptions().device(c10::kMeta).dtype(at::kBFloat16);
    const mx::MxProducts products(mx::find_recipe(recipe));
    const Tensor x = at::zeros({5, 64}, meta), w = at::zeros({48, 64}, meta);
    const Tensor g = at::zeros({5, 48}, meta);
    EXPECT_EQ(products.output(x, w, {}).sizes(), at::IntArrayRef({5, 48}));
    EXPECT_EQ(products.grad_input(g, w).sizes(), at::IntArrayRef({5, 64}));
    EXPECT_EQ(products.grad_weight(g, x).sizes(), at::IntArrayRef({48, 64}));
  }
}

TEST(MxRecipe, ThatIsUnknownIsAnError) {
  const Error error = testing::error_of([] { mx::find_recipe("mxfp4_cutlass"); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(
      testing::holds(error.what(), "there is no recipe 'mxfp4_cutlass'; choose mxfp8_cublas"));
}

}  // namespace
}  // namespace titan
