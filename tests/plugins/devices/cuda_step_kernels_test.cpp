// The cuda plugin's kernels for weights and float8 in the grid emulator, compared with ATen, the
// float8 converter and Titan's stochastic rounding.
#include <cmath>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <titan/nn/rounding.h>
#include <titan/ops/adamw_step.h>
#include <titan/ops/quantize.h>
#include <titan/scales_gradients.h>
#include <torch/library.h>

#include "plugins/converters/float8/products.h"
#include "plugins/converters/float8/quantize.h"
#include "plugins/devices/cuda/emulator/emulator.h"
#include "plugins/devices/cuda/kernels/fused_ops.h"
#include "plugins/devices/cuda/kernels/numbers.h"
#include "tests/plugins/converters/layer_fixture.h"
#include "tests/plugins/devices/cuda_kernels_fixture.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"

namespace titan::ops::testing {
namespace {

namespace fused = cuda::fused;

class CudaStepKernels : public KernelTest {};

constexpr at::ScalarType kFormats[] = {at::kFloat8_e4m3fn, at::kFloat8_e5m2};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.view(at::kByte).equal(b.view(at::kByte));
}

// Every bfloat16 value, and numbers between neighbours.
TEST_F(CudaStepKernels, RoundingToFewBitsIsThatOfAten) {
  const Tensor upper = at::arange(1 << 16, at::kInt).mul(1 << 16);
  for (const int64_t lower : {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff}) {
    const Tensor x = upper.add(lower).view(at::kFloat);
    const float* values = x.const_data_ptr<float>();
    const Tensor narrow = x.to(at::kBFloat16), half = x.to(at::kHalf);
    const Tensor e4m3 = x.clamp(-448, 448).to(at::kFloat8_e4m3fn);
    const Tensor e5m2 = x.clamp(-57344, 57344).to(at::kFloat8_e5m2);
    int64_t wrong = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (std::isnan(values[i])) {
        wrong += !std::isnan(cuda::widened(cuda::rounded<cuda::BFloat16>(values[i])));
        wrong += (cuda::rounded<cuda::Float8E4m3>(values[i]).bits & 0x7f) != 0x7f;
        wrong += (cuda::rounded<cuda::Float8E5m2>(values[i]).bits & 0x7f) <= 0x7c;
        continue;
      }
      wrong += cuda::rounded<cuda::BFloat16>(values[i]).bits !=
               static_cast<const uint16_t*>(narrow.const_data_ptr())[i];
      wrong += cuda::rounded<cuda::Half>(values[i]).bits !=
               static_cast<const uint16_t*>(half.const_data_ptr())[i];
      wrong += cuda::rounded<cuda::Float8E4m3>(values[i]).bits !=
               static_cast<const uint8_t*>(e4m3.const_data_ptr())[i];
      wrong += cuda::rounded<cuda::Float8E5m2>(values[i]).bits !=
               static_cast<const uint8_t*>(e5m2.const_data_ptr())[i];
    }
    EXPECT_EQ(wrong, 0) << lower;
  }
}

TEST_F(CudaStepKernels, Float8OfATensorIsTheConverters) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const at::ScalarType format : kFormats)
      for (const bool power : {false, true})
        for (const int64_t columns : {3, 40, 1100}) {
          const Tensor x = random({7, columns}, type) * 3;
          const auto rounding =
              power ? float8::ScaleRounding::down_to_power_of_two : float8::ScaleRounding::none;
          const Tensor scale = float8::scale_of(x.abs().max(), format, rounding);
          const auto [values, own_scale] = fused::quantize_tensor(x, format, power);
          EXPECT_TRUE(own_scale.equal(scale));
          EXPECT_TRUE(same_bytes(values, float8::cast(x, scale, format)));
          if (format != at::kFloat8_e4m3fn) continue;
          const Tensor row_scale = float8::scale_of(float8::largest_along(x, 1), format, rounding);
          const auto [rows, own_row_scale] = fused::quantize_rows(with_odd_start(x), power);
          EXPECT_TRUE(own_row_scale.equal(row_scale));
          EXPECT_TRUE(same_bytes(rows, float8::cast(x, row_scale, format)));
        }
}

// Whole tiles of 128 x 128, partial ones, and partial strips of 16 rows.
constexpr int64_t kTurnedShapes[][2] = {{7, 3},     {64, 40},   {16, 4},    {33, 136},
                                        {128, 128}, {272, 144}, {130, 260}, {300, 520}};

TEST_F(CudaStepKernels, Float8OfATransposeIsTheConverters) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const auto& [rows, columns] : kTurnedShapes)
      for (const bool is_odd : {false, true}) {
        const Tensor dense = random({rows, columns}, type) * 3;
        const Tensor x = (is_odd ? with_odd_start(dense) : dense).t();
        {
          const bool power = is_odd == (type == at::kFloat);
          const auto rounding =
              power ? float8::ScaleRounding::down_to_power_of_two : float8::ScaleRounding::none;
          for (const at::ScalarType format : kFormats) {
            const Tensor scale = float8::scale_of(x.abs().max(), format, rounding);
            const auto [values, own_scale] = fused::quantize_tensor(x, format, power);
            EXPECT_TRUE(own_scale.equal(scale));
            EXPECT_TRUE(values.is_contiguous());
            EXPECT_TRUE(same_bytes(values, float8::cast(x, scale, format).contiguous()))
                << rows << " " << columns;
          }
          const Tensor scale =
              float8::scale_of(float8::largest_along(x, 1), at::kFloat8_e4m3fn, rounding);
          const auto [values, own_scale] = fused::quantize_rows(x, power);
          EXPECT_TRUE(own_scale.equal(scale)) << rows << " " << columns;
          EXPECT_TRUE(values.is_contiguous());
          EXPECT_TRUE(same_bytes(values, float8::cast(x, scale, at::kFloat8_e4m3fn).contiguous()))
              << rows << " " << columns;
        }
      }
}

// The largest values are clamped.
TEST_F(CudaStepKernels, Float8ByAKnownScaleIsTheConverters) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const at::ScalarType format : kFormats)
      for (const auto& [rows, columns] : kTurnedShapes) {
        const Tensor dense = random({rows, columns}, type) * 3;
        const Tensor scale = at::full({}, format == at::kFloat8_e4m3fn ? 60 : 8000, at::kFloat);
        const Tensor expected = float8::cast(dense, scale, format);
        for (const Tensor& x : {dense, with_odd_start(dense)}) {
          EXPECT_TRUE(same_bytes(fused::quantize_by_scale(x, scale, format), expected));
          EXPECT_TRUE(same_bytes(fused::quantize_by_scale(x.t(), scale, format),
                                 expected.t().contiguous()));
        }
      }
}

TEST_F(CudaStepKernels, Float8OfATransposeOfWhatIsNoNumber) {
  const Tensor x = random({140, 48}, at::kFloat);
  x[133][4] = std::nan("");
  EXPECT_TRUE(
      std::get<1>(fused::quantize_tensor(x.t(), at::kFloat8_e4m3fn, false)).isnan().item<bool>());
  const Tensor by_row = std::get<1>(fused::quantize_rows(x.t(), false)).isnan().flatten();
  EXPECT_EQ(by_row.sum().item<int64_t>(), 1);
  EXPECT_TRUE(by_row[4].item<bool>());
  EXPECT_EQ(std::get<0>(fused::quantize_rows(at::full({0, 16}, 0, at::kFloat).t(), false)).sizes(),
            at::IntArrayRef({16, 0}));
}

TEST_F(CudaStepKernels, Float8OfZerosAndOfWhatIsNoNumber) {
  const auto [zeros, scale] =
      fused::quantize_tensor(at::full({5, 5}, 0, at::kFloat), at::kFloat8_e4m3fn, false);
  EXPECT_EQ(zeros.to(at::kFloat).abs().max().item<double>(), 0);
  EXPECT_TRUE(scale.equal(float8::scale_of(at::full({}, 0, at::kFloat), at::kFloat8_e4m3fn,
                                           float8::ScaleRounding::none)));
  const Tensor x = random({3, 9}, at::kFloat);
  x[1][4] = std::nan("");
  EXPECT_TRUE(
      std::get<1>(fused::quantize_tensor(x, at::kFloat8_e4m3fn, false)).isnan().item<bool>());
  const Tensor by_row = std::get<1>(fused::quantize_rows(x, false)).isnan().flatten();
  EXPECT_EQ(by_row.sum().item<int64_t>(), 1);
  EXPECT_TRUE(by_row[1].item<bool>());
}

// Registers on the CPU the operations that the plugin registers for CUDA.
TEST_F(CudaStepKernels, ProductsThatTheDeviceQuantisesForAreTheConvertersOwn) {
  for (const char* name : {"tensorwise", "rowwise", "rowwise_with_gw_hp"})
    for (const auto& c : quantized_test::layer_cases()) {
      quantized_test::OneLinear layer(c);
      const Tensor x = layer.x.detach(), w = layer.weight(), g = layer.grad;
      const float8::Recipe recipe = float8::find_recipe(name);
      const auto scales =
          std::make_shared<float8::WeightScales>(dist::Mesh(), c10::kCPU, c.dtype, recipe.rounding);
      const float8::Float8Products products(recipe, scales->add(layer.linear.weight()),
                                            float8::Arithmetic::by_device);
      const auto all = [&] {
        std::vector<Tensor> results = {products.grad_input(g, w), products.grad_weight(g, x)};
        if (recipe.name == "tensorwise") results.push_back(products.output(x, w, {}));
        return results;
      };
      EXPECT_FALSE(has_float8(x));
      EXPECT_EQ(products.uses_maximum(x), recipe.name == "tensorwise");
      const std::vector<Tensor> composed = all();

      torch::Library cpu(torch::Library::IMPL, "titan", c10::DispatchKey::CPU, __FILE__, __LINE__);
      int64_t num_calls = 0;
      cpu.impl("float8_of_tensor", [&](const Tensor& x, at::ScalarType format, bool power) {
        ++num_calls;
        return fused::quantize_tensor(x, format, power);
      });
      cpu.impl("float8_of_rows", [&](const Tensor& x, bool power) {
        ++num_calls;
        return fused::quantize_rows(x, power);
      });
      cpu.impl("float8_by_scale", [&](const Tensor& x, const Tensor& scale, at::ScalarType format) {
        ++num_calls;
        return fused::quantize_by_scale(x, scale, format);
      });
      EXPECT_TRUE(has_float8(x));
      EXPECT_FALSE(has_float8(x.to(at::kHalf)));
      EXPECT_FALSE(products.uses_maximum(x));
      const std::vector<Tensor> own = all();
      for (size_t i = 0; i < own.size(); ++i)
        EXPECT_TRUE(own[i].equal(composed[i])) << name << ", product " << i << " of " << c.rows;
      EXPECT_GT(num_calls, 0);
    }
}

struct Weight {
  Tensor weight, gradient, exp_avg, exp_avg_sq, step;
};

Weight weight_of(at::IntArrayRef shape, at::ScalarType w, at::ScalarType g, at::ScalarType s) {
  return {random(shape, w), random(shape, g), random(shape, s) * 0.1,
          random(shape, s).square() * 0.01, at::full({}, 7, at::kFloat)};
}
Weight widened(const Weight& from) {
  const auto wide = [](const Tensor& x) { return x.to(at::kFloat, false, /*copy=*/true); };
  return {wide(from.weight), wide(from.gradient), wide(from.exp_avg), wide(from.exp_avg_sq),
          wide(from.step)};
}

constexpr AdamWNumbers kStep{3e-3, 0.9, 0.95, 1e-8, 0.1};
/// Dtypes of weight, gradient and states that the kernel accepts.
constexpr at::ScalarType kAdamWTypes[][3] = {
    {at::kFloat, at::kFloat, at::kFloat},       {at::kFloat, at::kFloat, at::kBFloat16},
    {at::kBFloat16, at::kBFloat16, at::kFloat}, {at::kBFloat16, at::kBFloat16, at::kBFloat16},
    {at::kBFloat16, at::kFloat, at::kFloat},    {at::kBFloat16, at::kFloat, at::kBFloat16}};

bool step(const Weight& w) {
  return fused::adamw_step(w.weight, w.gradient, w.exp_avg, w.exp_avg_sq, w.step, kStep.lr,
                           kStep.beta1, kStep.beta2, kStep.eps, kStep.weight_decay, std::nullopt, 0,
                           1, 1);
}

/// During its lifetime the CPU has the operation that the cuda plugin registers.
torch::Library cpu_with_adamw() {
  torch::Library library(torch::Library::IMPL, "titan", c10::DispatchKey::CPU, __FILE__, __LINE__);
  library.impl("adamw_step_", TORCH_FN(fused::adamw_step));
  return library;
}

TEST_F(CudaStepKernels, AdamWIsThatOfAtenRoundedOnce) {
  for (const auto& [w, g, s] : kAdamWTypes)
    for (const int64_t size : {1, 77, 9000}) {
      const Weight own = weight_of({size}, w, g, s);
      const Weight exact = widened(own);
      at::_fused_adamw_({exact.weight}, {exact.gradient}, {exact.exp_avg}, {exact.exp_avg_sq}, {},
                        {exact.step}, kStep.lr, kStep.beta1, kStep.beta2, kStep.weight_decay,
                        kStep.eps, false, false, {}, {});
      EXPECT_TRUE(step(own));
      expect_near(own.weight, exact.weight.to(w), "weight");
      expect_near(own.exp_avg, exact.exp_avg.to(s), "exp_avg");
      expect_near(own.exp_avg_sq, exact.exp_avg_sq.to(s), "exp_avg_sq");
    }
  EXPECT_FALSE(step(weight_of({4}, at::kHalf, at::kHalf, at::kFloat)));
  EXPECT_FALSE(step(weight_of({4}, at::kFloat, at::kBFloat16, at::kFloat)));
  Weight turned = weight_of({4, 5}, at::kBFloat16, at::kBFloat16, at::kFloat);
  turned.gradient = random({5, 4}, at::kBFloat16).t();
  EXPECT_FALSE(step(turned));
}

/// Bits of the update in fp32 for a slice of a weight, by Titan's own rounding.
void expect_rounded_as_the_cpu(const std::vector<int64_t>& whole, const nn::Slice& slice) {
  constexpr uint64_t kSeed = 5;
  const std::string name = "layers.0.weight";
  Weight own = weight_of(slice.sizes, at::kBFloat16, at::kBFloat16, at::kFloat);
  const Weight wide = widened(own);
  step(wide);
  const Tensor expected = at::empty(slice.sizes, at::kBFloat16);
  nn::round_stochastically(expected, wide.weight, kSeed, name, 7, whole, slice);
  EXPECT_TRUE(adamw_step(own.weight, own.gradient, own.exp_avg, own.exp_avg_sq, own.step, kStep,
                         StochasticRounding{kSeed, name, whole, slice}));
  EXPECT_TRUE(own.weight.equal(expected));
  EXPECT_FALSE(own.weight.equal(wide.weight.to(at::kBFloat16)));
}

TEST_F(CudaStepKernels, AdamWRoundsAtRandomWithTheBitsOfTheCpu) {
  const torch::Library library = cpu_with_adamw();
  expect_rounded_as_the_cpu({40, 72}, {{0, 0}, {40, 72}});
  expect_rounded_as_the_cpu({40, 72}, {{13, 0}, {9, 72}});
  expect_rounded_as_the_cpu({40, 73}, {{3, 5}, {30, 41}});
  expect_rounded_as_the_cpu({4, 6, 5}, {{1, 0, 0}, {2, 6, 5}});
  expect_rounded_as_the_cpu({4, 6, 5}, {{1, 2, 0}, {2, 3, 5}});
  expect_rounded_as_the_cpu({4, 6, 5}, {{1, 0, 1}, {2, 6, 3}});
  expect_rounded_as_the_cpu({37}, {{5}, {21}});
  expect_rounded_as_the_cpu({37}, {{0}, {37}});
}

// Multiplied as in clipping: in fp32, rounded to the gradient's dtype.
TEST_F(CudaStepKernels, AdamWOfAScaledGradientIsThatOfOneMultipliedBefore) {
  for (const auto& [w, g, s] : kAdamWTypes)
    for (const int64_t size : {1, 77, 9000}) {
      const Weight own = weight_of({size}, w, g, s);
      const auto copy = [](const Tensor& x) { return x.clone(); };
      const Weight other = {copy(own.weight), copy(own.gradient), copy(own.exp_avg),
                            copy(own.exp_avg_sq), own.step};
      const Tensor scale = at::full({}, 0.3721, at::kFloat), before = own.gradient.clone();
      other.gradient.copy_(other.gradient.to(at::kFloat).mul_(scale));
      EXPECT_TRUE(step(other));
      EXPECT_TRUE(fused::scaled_adamw_step(
          own.weight, own.gradient, scale, own.exp_avg, own.exp_avg_sq, own.step, kStep.lr,
          kStep.beta1, kStep.beta2, kStep.eps, kStep.weight_decay, std::nullopt, 0, 1, 1));
      EXPECT_TRUE(own.weight.equal(other.weight));
      EXPECT_TRUE(own.exp_avg.equal(other.exp_avg));
      EXPECT_TRUE(own.exp_avg_sq.equal(other.exp_avg_sq));
      EXPECT_TRUE(own.gradient.equal(before));
    }
}

TEST_F(CudaStepKernels, AdamWLeavesToOthersWhatItDoesNotTake) {
  const auto takes = [](const std::vector<int64_t>& whole, const nn::Slice& slice) {
    const Weight w = weight_of(slice.sizes, at::kBFloat16, at::kBFloat16, at::kFloat);
    const Tensor before = w.weight.clone();
    const bool taken = adamw_step(w.weight, w.gradient, w.exp_avg, w.exp_avg_sq, w.step, kStep,
                                  StochasticRounding{1, "w", whole, slice});
    EXPECT_NE(w.weight.equal(before), taken);
    return taken;
  };
  EXPECT_FALSE(takes({4, 6}, {{0, 0}, {4, 6}}));  // the CPU has no such operation yet
  const torch::Library library = cpu_with_adamw();
  EXPECT_TRUE(takes({4, 6}, {{0, 0}, {4, 6}}));
  EXPECT_FALSE(takes({4, 6, 5}, {{1, 2, 1}, {2, 3, 2}}));  // not a matrix of the stack
}

/// A weight in bf16 after some optimizer steps with stochastic rounding.
Tensor trained(const char* state_dtype) {
  Parameter p(std::vector<int64_t>{24, 36}, nn::Init::constant(1));
  p.set_name("w");
  p.materialize(c10::kCPU, at::kBFloat16, 1);
  const auto adamw = titan::testing::optimizer(
      "AdamW", {{"lr", 1e-3}, {"stochastic_rounding", true}, {"state_dtype", state_dtype}}, {&p});
  for (int step = 0; step < 5; ++step) {
    p.shard().mutable_grad() =
        at::sin(at::arange(24 * 36).to(at::kFloat) * (step + 1)).view({24, 36}).to(at::kBFloat16);
    adamw->step(1);
  }
  return p.shard().detach().clone();
}

/// A weight after some steps of AdamW. Either the optimizer or this function scales the gradients.
Tensor clipped(at::ScalarType type, const char* state_dtype, bool by_optimizer) {
  Parameter p(std::vector<int64_t>{24, 36}, nn::Init::constant(1));
  p.set_name("w");
  p.materialize(c10::kCPU, type, 1);
  const auto adamw =
      titan::testing::optimizer("AdamW", {{"lr", 1e-3}, {"state_dtype", state_dtype}}, {&p});
  for (int step = 0; step < 5; ++step) {
    const Tensor gradient =
        at::sin(at::arange(24 * 36).to(at::kFloat) * (step + 1)).view({24, 36}).to(type);
    const Tensor scale = at::full({}, 0.3721 + 0.01 * step, at::kDouble);
    p.shard().mutable_grad() =
        by_optimizer ? gradient : gradient.to(at::kFloat).mul(scale.to(at::kFloat)).to(type);
    if (by_optimizer)
      dynamic_cast<ScalesGradients&>(*adamw).step_scaled(1, scale);
    else
      adamw->step(1);
  }
  return p.shard().detach().clone();
}

TEST_F(CudaStepKernels, OptimizersMultiplyGradientsWithTheBitsOfClipping) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const char* state_dtype : {"as_stored", "float32", "bfloat16"}) {
      // without the operation the optimizer multiplies the gradient first
      EXPECT_TRUE(clipped(type, state_dtype, true).equal(clipped(type, state_dtype, false)));
      torch::Library library = cpu_with_adamw();
      library.impl("scaled_adamw_step_", TORCH_FN(fused::scaled_adamw_step));
      const int64_t launches = cuda::emulator::totals().launches;
      EXPECT_TRUE(clipped(type, state_dtype, true).equal(clipped(type, state_dtype, false)));
      EXPECT_EQ(cuda::emulator::totals().launches - launches, 10);
    }
}

TEST_F(CudaStepKernels, OptimizersScaleGradientsWhereTheDeviceDoes) {
  Parameter p(std::vector<int64_t>{4, 4}, nn::Init::constant(1));
  p.set_name("w");
  p.materialize(c10::kCPU, at::kFloat, 1);
  const auto scales = [&](const char* name, const char* implementation) {
    const auto made = titan::testing::optimizer(name, {{"implementation", implementation}}, {&p});
    return dynamic_cast<ScalesGradients&>(*made).scales_gradients();
  };
  EXPECT_FALSE(scales("AdamW", "fused"));
  torch::Library library = cpu_with_adamw();
  library.impl("scaled_adamw_step_", TORCH_FN(fused::scaled_adamw_step));
  EXPECT_TRUE(scales("AdamW", "fused"));
  EXPECT_FALSE(scales("AdamW", "foreach"));
  EXPECT_FALSE(scales("Adam", "fused"));
}

// The last bit of the update in fp32 may differ, which changes a few roundings.
TEST_F(CudaStepKernels, OptimizersUpdateWideWeightsByWhatTheDeviceBrings) {
  for (const char* state_dtype : {"float32", "bfloat16"}) {
    const Tensor composed = trained(state_dtype);
    const int64_t launches = cuda::emulator::totals().launches;
    Tensor own;
    {
      const torch::Library library = cpu_with_adamw();
      own = trained(state_dtype);
    }
    EXPECT_EQ(cuda::emulator::totals().launches - launches, 5);
    EXPECT_LE((own != composed).sum().item<int64_t>(), 4);
    EXPECT_LE(max_error(own, composed.to(at::kDouble)), 1.0 / 128);
    EXPECT_TRUE(trained(state_dtype).equal(composed));
  }
}

}  // namespace
}  // namespace titan::ops::testing
