// The three products of each float8 recipe against their definition.
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/weight_gradients.h>
#include <titan/recompute.h>

#include "definitions.h"
#include "layer_fixture.h"
#include "plugins/converters/float8/hardware.h"
#include "plugins/converters/float8/products.h"

namespace titan {
namespace {

using at::Tensor;
using float8::Arithmetic;
using float8::Float8Products;
using quantized_test::layer_cases;
using quantized_test::narrowed;
using quantized_test::OneLinear;

struct Expected {
  Tensor y, grad_x, grad_weight;
};

Expected expected(const std::string& recipe, OneLinear& layer) {
  const Tensor x = layer.x.detach(), w = layer.weight(), g = layer.grad;
  const at::ScalarType dtype = x.scalar_type();
  if (recipe == "tensorwise") {
    const Tensor nx = narrowed(x, {}, false), nw = narrowed(w, {}, false);
    const Tensor ng = narrowed(g, {}, false, 57344);
    return {at::mm(nx, nw.t()).to(dtype), at::mm(ng, nw).to(dtype), at::mm(ng.t(), nx).to(dtype)};
  }
  const Tensor y = at::mm(narrowed(x, 1, true), narrowed(w, 1, true).t()).to(dtype);
  if (recipe == "rowwise")
    return {y, at::mm(narrowed(g, 1, true), narrowed(w, 0, true)).to(dtype),
            at::mm(narrowed(g, 0, true).t(), narrowed(x, 0, true)).to(dtype)};
  return {y, at::mm(narrowed(g, 1, true), narrowed(w, {}, true)).to(dtype), at::mm(g.t(), x)};
}

std::shared_ptr<const Float8Products> make_products(const std::string& name, OneLinear& layer,
                                                    Arithmetic arithmetic) {
  const float8::Recipe recipe = float8::find_recipe(name);
  const auto scales = std::make_shared<float8::WeightScales>(
      dist::Mesh(), c10::kCPU, layer.x.scalar_type(), recipe.rounding);
  return std::make_shared<Float8Products>(recipe, scales->add(layer.linear.weight()), arithmetic);
}

const char* const kRecipes[] = {"tensorwise", "rowwise", "rowwise_with_gw_hp"};

TEST(Float8Products, EqualTheirDefinitionToTheBit) {
  for (const char* recipe : kRecipes)
    for (const auto& c : layer_cases()) {
      OneLinear layer(c);
      layer.use(make_products(recipe, layer, Arithmetic::by_definition));
      const Tensor y = layer.run();
      const Expected definition = expected(recipe, layer);
      EXPECT_TRUE(at::equal(y, definition.y)) << recipe << " " << c.in;
      EXPECT_TRUE(at::equal(layer.x.grad(), definition.grad_x)) << recipe << " " << c.in;
      EXPECT_TRUE(at::equal(layer.linear.weight().grad(), definition.grad_weight)) << recipe;
      EXPECT_EQ(y.scalar_type(), c.dtype);
      // and they differ from the products in high precision
      EXPECT_FALSE(at::equal(y, at::mm(layer.x.detach(), layer.weight().t()))) << recipe;
    }
}

/// The CPU's own float8 product takes one scale per operand. This also tests the code around it
/// that adds scales per row.
TEST(Float8Products, OfTheDeviceAreTheDefinitionsButForTheOrderOfSums) {
  for (const auto& c : layer_cases()) {
    OneLinear layer(c);
    const double tolerance = c.dtype == at::kFloat ? 1e-5 : 1e-2;
    const auto is_close = [&](const Tensor& actual, const Tensor& definition) {
      return ((actual - definition).norm() / definition.norm()).item<double>() < tolerance;
    };
    for (const char* recipe : kRecipes) {
      const auto device = make_products(recipe, layer, Arithmetic::by_device);
      const Expected definition = expected(recipe, layer);
      const Tensor x = layer.x.detach(), w = layer.weight(), g = layer.grad;
      EXPECT_TRUE(is_close(device->grad_input(g, w), definition.grad_x)) << recipe << c.rows;
      EXPECT_TRUE(is_close(device->grad_weight(g, x), definition.grad_weight)) << recipe << c.rows;
      if (std::string(recipe) == "tensorwise") {
        EXPECT_TRUE(is_close(device->output(x, w, {}), definition.y)) << c.rows;
      }
    }
  }
}

TEST(Float8Products, PutTheWeightsGradientIntoTheQueueThatDefers) {
  OneLinear layer({32, 64, 48, at::kFloat});
  layer.use(make_products("tensorwise", layer, Arithmetic::by_definition));
  layer.run();
  const Tensor whole = layer.linear.weight().grad().clone(), grad_x = layer.x.grad().clone();

  const auto queue = std::make_shared<nn::WeightGradientQueue>();
  const nn::WeightGradientQueue::Scope scope(queue);
  layer.run();  // not deferred yet
  EXPECT_TRUE(at::equal(layer.linear.weight().grad(), whole));
  queue->defer();
  layer.run();
  EXPECT_TRUE(at::equal(layer.x.grad(), grad_x));
  EXPECT_FALSE(layer.linear.weight().grad().defined());
  queue->run();
  EXPECT_TRUE(at::equal(layer.linear.weight().grad(), whole));
}

TEST(Float8Products, SkipWhatNobodyAsksFor) {
  OneLinear layer({32, 64, 48, at::kFloat});
  layer.use(make_products("tensorwise", layer, Arithmetic::by_definition));
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(layer.linear(layer.x, Batch{}).requires_grad());
}

TEST(Float8Products, TakeABatchWithoutTokens) {
  for (const char* recipe : kRecipes) {
    OneLinear layer({32, 64, 48, at::kFloat});
    layer.use(make_products(recipe, layer, Arithmetic::by_definition));
    layer.x = at::zeros({0, 64}).set_requires_grad(true);
    layer.grad = at::zeros({0, 48});
    EXPECT_EQ(layer.run().sizes(), at::IntArrayRef({0, 48}));
    EXPECT_TRUE(at::equal(layer.linear.weight().grad(), at::zeros({48, 64})));
  }
}

/// Keeps every result, as selective checkpointing with "op" may.
struct Keeper : RecomputeScope {
  std::vector<Tensor> run(const Operation& operation, const Compute& compute) override {
    kinds.push_back(operation.kind);
    flops += operation.flops;
    if (place == kept.size()) kept.push_back(compute());
    return kept[place++];
  }
  bool runs_again() const override { return false; }
  std::vector<Operation::Kind> kinds;
  double flops = 0;
  std::vector<std::vector<Tensor>> kept;
  size_t place = 0;
};

TEST(Float8Products, LetARecomputationKeepTheMaximumAndTheProduct) {
  OneLinear layer({32, 64, 48, at::kFloat});
  layer.use(make_products("tensorwise", layer, Arithmetic::by_definition));
  Keeper keeper;
  const RecomputeScope::Entry entry(&keeper);
  const Tensor first = layer.run();
  EXPECT_EQ(keeper.kinds, (std::vector{Operation::Kind::maximum, Operation::Kind::matmul}));
  EXPECT_EQ(keeper.flops, 2.0 * 32 * 64 * 48);
  const Tensor gradient = layer.linear.weight().grad().clone();
  keeper.place = 0;
  EXPECT_TRUE(at::equal(layer.run(), first));
  EXPECT_EQ(keeper.kept.size(), 2u);
  EXPECT_TRUE(at::equal(layer.linear.weight().grad(), gradient));
}

TEST(Float8Products, RunOnMeta) {
  for (const char* name : kRecipes)
    for (const Arithmetic arithmetic : {Arithmetic::by_definition, Arithmetic::by_device}) {
      const at::TensorOptions meta = at::TensorOptions().device(c10::kMeta).dtype(at::kBFloat16);
      nn::Linear linear(64, 48, nn::WeightLayout::replicated, nn::Init::normal(0, 1));
      linear.set_names("layer");
      linear.weight().allocate(c10::kMeta, at::kBFloat16);
      const float8::Recipe recipe = float8::find_recipe(name);
      const auto scales = std::make_shared<float8::WeightScales>(dist::Mesh(), c10::kMeta,
                                                                 at::kBFloat16, recipe.rounding);
      linear.set_kernel(
          "test", std::make_unique<quantized::QuantizedKernel>(std::make_shared<Float8Products>(
                      recipe, scales->add(linear.weight()), arithmetic)));
      const Tensor x = at::zeros({2, 5, 64}, meta).set_requires_grad(true);
      const Tensor y = linear(x, Batch{});
      EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 5, 48}));
      y.backward(at::zeros({2, 5, 48}, meta));
      EXPECT_EQ(x.grad().sizes(), x.sizes());
      EXPECT_EQ(linear.weight().grad().sizes(), at::IntArrayRef({48, 64}));
    }
}

TEST(Float8Scales, FollowTheWeightOnlyWhenTold) {
  OneLinear layer({32, 64, 48, at::kFloat});
  const auto scales = std::make_shared<float8::WeightScales>(dist::Mesh(), c10::kCPU, at::kFloat,
                                                             float8::ScaleRounding::none);
  const auto scale = scales->add(layer.linear.weight());
  const double before = scale->value().item<double>();
  EXPECT_EQ(static_cast<float>(before),
            static_cast<float>(448.0 / layer.weight().abs().max().item<double>()));
  layer.weight().mul_(2);
  EXPECT_EQ(scale->value().item<double>(), before);
  scales->update();
  EXPECT_EQ(scale->value().item<double>(), before / 2);
}

TEST(Float8Gather, GivesBackTheSameBytesForEveryValue) {
  // every finite e4m3 value, with scales that cover the range of weights
  std::vector<int64_t> bytes;
  for (int64_t byte = 0; byte < 256; ++byte)
    if (byte % 128 != 127) bytes.push_back(byte);
  const Tensor values = at::tensor(bytes).to(at::kByte).view(at::kFloat8_e4m3fn);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (double maximum = 1e-12; maximum < 1e30; maximum *= 1.37) {
      const Tensor scale = float8::scale_of(at::full({}, maximum, at::kDouble), at::kFloat8_e4m3fn,
                                            float8::ScaleRounding::none);
      const Tensor wide = float8::dequantize({values, scale}).to(dtype);
      const Tensor again = float8::cast(wide, scale, at::kFloat8_e4m3fn);
      ASSERT_TRUE(at::equal(again.view(at::kByte), values.view(at::kByte)))
          << maximum << " " << dtype;
    }
}

TEST(Float8Recipe, LeavesSmallProductsAlone) {
  const float8::Recipe tensorwise = float8::find_recipe("tensorwise");
  const float8::Recipe rowwise = float8::find_recipe("rowwise");
  EXPECT_TRUE(float8::is_too_small(tensorwise, 1024, 4096));
  EXPECT_FALSE(float8::is_too_small(tensorwise, 1040, 4096));
  EXPECT_FALSE(float8::is_too_small(tensorwise, 1024, 4112));
  EXPECT_TRUE(float8::is_too_small(rowwise, 2048, 8192));
  EXPECT_TRUE(float8::is_too_small(rowwise, 8192, 1024));
  EXPECT_TRUE(float8::is_too_small(rowwise, 4096, 2048));
  EXPECT_FALSE(float8::is_too_small(rowwise, 4112, 2048));
  EXPECT_FALSE(float8::is_too_small(rowwise, 4096, 2064));
}

}  // namespace
}  // namespace titan
