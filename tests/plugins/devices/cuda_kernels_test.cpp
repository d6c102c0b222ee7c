// The kernels of the cuda plugin, by the grid emulator: against titan's CPU operations, ATen's and
// torchao's numbers, in orders that a GPU might take.
#include "plugins/devices/cuda/kernels/fused_ops.h"

#include <cmath>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/rounding.h>
#include <titan/ops/embedding.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>
#include <xxhash.h>

#include "plugins/converters/float8/quantize.h"
#include "plugins/devices/cuda/composite_ops.h"
#include "plugins/devices/cuda/emulator/emulator.h"
#include "plugins/devices/cuda/kernels/numbers.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::ops::testing {
namespace {

namespace fused = cuda::fused;
using cuda::emulator::Defect;
using cuda::emulator::GridError;
using cuda::emulator::Order;
using cuda::emulator::ScopedOrder;

constexpr at::ScalarType kFusedTypes[] = {at::kFloat, at::kBFloat16, at::kHalf};

/// Memory that nobody wrote is NaN, so that a kernel which leaves some of it shows.
class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override { at::globalContext().setDeterministicAlgorithms(true, true); }
  void TearDown() override { at::globalContext().setDeterministicAlgorithms(false, false); }
};

double roundings(at::ScalarType type) {
  return type == at::kFloat ? 2e-6 : type == at::kHalf ? 1e-3 : 8e-3;
}

void expect_near(const Tensor& got, const Tensor& expected, const char* what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  EXPECT_EQ(got.strides(), expected.strides()) << what;
  EXPECT_EQ(got.scalar_type(), expected.scalar_type()) << what;
  if (expected.numel() == 0) return;
  const double largest = expected.detach().to(at::kDouble).abs().max().item<double>();
  EXPECT_LE(max_error(got, expected.to(at::kDouble)),
            roundings(got.scalar_type()) * (largest + 1e-300))
      << what << " of " << got.scalar_type() << " " << got.sizes();
}

/// `compute` must give the same bits in any order of threads and blocks.
template <class Compute>
void expect_same_in_any_order(const Compute& compute) {
  const auto with = [&](Order order) {
    const ScopedOrder scope(order);
    return compute();
  };
  const Tensors forward = with(Order::forward), backward = with(Order::backward),
                shuffled = with(Order::shuffled);
  for (size_t i = 0; i < forward.size(); ++i) {
    EXPECT_TRUE(backward[i].equal(forward[i])) << i;
    EXPECT_TRUE(shuffled[i].equal(forward[i])) << i;
  }
}

/// Of the same values, with rows that lie further apart or start at odd addresses.
Tensor with_odd_start(const Tensor& x) {
  const Tensor storage = at::zeros_like(x).flatten();
  const Tensor longer = at::cat({storage.narrow(0, 0, 1), storage});
  return longer.narrow(0, 1, x.numel()).view(x.sizes()).copy_(x);
}

TEST_F(CudaKernels, RmsNormIsThatOfTheCpu) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t dim : {8, 40, 257, 2056}) {
      const Tensor x = random({3, 5, dim}, type).requires_grad_();
      const Tensor weight = random({dim}, type).requires_grad_();
      const Tensor y = rms_norm(x, weight, 1e-5), dy = random(y.sizes(), type);
      const Tensors own = torch::autograd::grad({y}, {x, weight}, {dy});
      at::NoGradGuard no_grad;
      const auto [out, rstd] = fused::rms_norm_forward(x, weight, 1e-5);
      const auto [dx, dweight] = fused::rms_norm_backward(dy, x, weight, rstd);
      expect_near(rstd, std::get<1>(composite::rms_norm_forward(x, weight, 1e-5)), "rstd");
      expect_near(out, y.detach(), "y");
      expect_near(dx, own[0], "dx");
      expect_near(dweight, own[1], "dweight");
    }
}

// 600 rows are three to a block; 8200 columns are more than the shared memory takes.
TEST_F(CudaKernels, RmsNormAddsTheWeightsGradientOverManyRowsAndColumns) {
  const int64_t shapes[][2] = {{600, 24}, {2, 8200}};
  for (const auto& [rows, dim] : shapes) {
    const Tensor x = random({rows, dim}, at::kFloat), dy = random({rows, dim}, at::kFloat);
    const Tensor weight = random({dim}, at::kFloat);
    const auto [y, rstd] = fused::rms_norm_forward(x, weight, 1e-6);
    const auto [dx, dweight] = fused::rms_norm_backward(dy, x, weight, rstd);
    const auto [exact_dx, exact_dweight] = composite::rms_norm_backward(
        dy.to(at::kDouble), x.to(at::kDouble), weight.to(at::kDouble), rstd.to(at::kDouble));
    EXPECT_LE(max_error(dx, exact_dx), 1e-5);
    EXPECT_LE(max_error(dweight, exact_dweight), 1e-6 * static_cast<double>(rows));
  }
}

TEST_F(CudaKernels, RmsNormTakesOddAddressesAndAWeightOfAnotherType) {
  const Tensor x = random({7, 48}, at::kBFloat16), dy = random({7, 48}, at::kBFloat16);
  for (const at::ScalarType type : {at::kFloat, at::kHalf}) {
    const Tensor weight = random({48}, type);
    const auto [y, rstd] = fused::rms_norm_forward(with_odd_start(x), weight, 1e-6);
    expect_near(y, std::get<0>(composite::rms_norm_forward(x, weight, 1e-6)), "y");
    const auto [dx, dweight] = fused::rms_norm_backward(with_odd_start(dy), x, weight, rstd);
    const auto [own_dx, own_dweight] = composite::rms_norm_backward(dy, x, weight, rstd);
    expect_near(dx, own_dx, "dx");
    expect_near(dweight, own_dweight, "dweight");
  }
}

TEST_F(CudaKernels, SumAndNormAreTheBitsOfOneAfterTheOther) {
  for (const at::ScalarType type : kFusedTypes) {
    const Tensor x = random({6, 56}, type), residual = random({6, 56}, type);
    const Tensor weight = random({56}, type), dy = random({6, 56}, type);
    const fused::SumAndNorm both = fused::add_rms_norm_forward(x, residual, weight, 1e-5);
    const Tensor sum = x + residual;
    const auto [y, rstd] = fused::rms_norm_forward(sum, weight, 1e-5);
    EXPECT_TRUE(both.sum.equal(sum));
    EXPECT_TRUE(both.y.equal(y));
    EXPECT_TRUE(both.rstd.equal(rstd));
    const Tensor dsum = random({6, 56}, type);
    const auto [dx, dweight] = fused::add_rms_norm_backward(dy, dsum, sum, weight, rstd);
    const auto [norm_dx, norm_dweight] = composite::rms_norm_backward(
        dy.to(at::kFloat), sum.to(at::kFloat), weight.to(at::kFloat), rstd);
    expect_near(dx, (norm_dx + dsum.to(at::kFloat)).to(type), "dx");
    expect_near(dweight, norm_dweight.to(type), "dweight");
  }
}

TEST_F(CudaKernels, SwigluIsThatOfTheCpu) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t columns : {1, 33, 64, 2049}) {
      const Tensor gate = random({3, columns}, type).requires_grad_();
      const Tensor up = random({3, columns}, type).requires_grad_();
      const Tensor out = swiglu(gate, up), dout = random(out.sizes(), type);
      const Tensors own = torch::autograd::grad({out}, {gate, up}, {dout});
      at::NoGradGuard no_grad;
      expect_near(fused::swiglu_forward(gate, up), out.detach(), "out");
      const auto [dgate, dup] = fused::swiglu_backward(dout, gate, up);
      expect_near(dgate, own[0], "dgate");
      expect_near(dup, own[1], "dup");
    }
}

TEST_F(CudaKernels, SwigluReadsTheHalvesOfAPackedProductInPlace) {
  for (const int64_t columns : {24, 25}) {
    const Tensor packed = random({2, 5, 2 * columns}, at::kBFloat16);
    const Tensor gate = packed.narrow(2, 0, columns), up = packed.narrow(2, columns, columns);
    expect_near(fused::swiglu_forward(gate, up),
                composite::swiglu_forward(gate.contiguous(), up.contiguous()), "out");
    // rows that do not follow each other in one stride
    const Tensor turned = packed.transpose(0, 1);
    expect_near(
        fused::swiglu_forward(turned.narrow(2, 0, columns), turned.narrow(2, columns, columns)),
        composite::swiglu_forward(turned.narrow(2, 0, columns).contiguous(),
                                  turned.narrow(2, columns, columns).contiguous()),
        "out of turned rows");
  }
}

TEST_F(CudaKernels, RopeIsThatOfTheCpuBothWays) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t head_dim : {6, 16, 64})
      for (const bool with_positions : {false, true}) {
        const Tensor angles = random({12, head_dim / 2}, at::kFloat);
        const Tensor cos = angles.cos(), sin = angles.sin();
        // q and k side by side in one product
        const Tensor packed = random({2, 9, 6, head_dim}, type);
        const Tensor q = packed.narrow(2, 0, 4), k = packed.narrow(2, 4, 2);
        const Tensor ids = with_positions ? random_ids(12, {2, 9}) : Tensor();
        const auto positions = with_positions ? std::optional(ids) : std::nullopt;
        for (const bool inverse : {false, true}) {
          const auto [q_out, k_out] = fused::rope_rotate(q, k, cos, sin, positions, inverse);
          const auto [q_own, k_own] = composite::rope_rotate(q, k, cos, sin, positions, inverse);
          expect_near(q_out, q_own, "q");
          expect_near(k_out, k_own, "k");
        }
        const auto [q_cpu, k_cpu] = rope(q, k, cos, sin, ids);
        expect_near(std::get<0>(fused::rope_rotate(q, k, cos, sin, positions, false)), q_cpu, "q");
      }
}

TEST_F(CudaKernels, RopeRefusesPositionsOutsideOfTheTable) {
  const Tensor angles = random({4, 4}, at::kFloat), q = random({1, 3, 2, 8}, at::kFloat);
  for (const int64_t wrong : {4, -1}) {
    const Tensor positions = at::full({1, 3}, wrong, at::kLong);
    EXPECT_THROW(fused::rope_rotate(q, q, angles, angles, positions, false), GridError);
  }
}

TEST_F(CudaKernels, CrossEntropyIsThatOfAten) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t words : {2, 33, 500, 5001}) {
      const Tensor logits = random({7, words}, type) * 5;
      const Tensor labels = random_ids(words, {7});
      labels[2] = kIgnoredLabel;
      const Tensor exact_logits = logits.to(at::kDouble).requires_grad_();
      const Tensor exact =
          at::cross_entropy_loss(exact_logits, labels, {}, at::Reduction::None, kIgnoredLabel);
      const Tensor gradient = torch::autograd::grad({exact.sum()}, {exact_logits})[0];
      at::NoGradGuard no_grad;
      const Tensor untouched = logits.clone();
      const Tensor alone = fused::cross_entropy(logits, labels, /*gradient=*/false);
      EXPECT_TRUE(logits.equal(untouched));
      const Tensor losses = fused::cross_entropy(logits, labels, /*gradient=*/true);
      EXPECT_TRUE(losses.equal(alone));
      EXPECT_LE(max_error(losses, exact), 2e-5) << words;
      EXPECT_LE(max_error(logits, gradient), type == at::kFloat ? 2e-6 : roundings(type) / 2)
          << words;
      EXPECT_EQ(logits[2].abs().max().item<double>(), 0);
    }
}

TEST_F(CudaKernels, CrossEntropyTakesInfinitiesAndSaysWhatIsNoNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor logits = random({3, 40}, at::kFloat);
  logits[0][3] = -inf;
  logits[1].fill_(-inf);
  logits[1][7] = 2;
  logits[2][5] = std::nan("");
  const Tensor labels = at::full({3}, 7, at::kLong);
  const Tensor exact = at::cross_entropy_loss(logits.to(at::kDouble), labels, {},
                                              at::Reduction::None, kIgnoredLabel);
  const Tensor losses = fused::cross_entropy(logits, labels, /*gradient=*/true);
  EXPECT_LE(max_error(losses.narrow(0, 0, 2), exact.narrow(0, 0, 2)), 1e-5);
  EXPECT_EQ(logits[0][3].item<double>(), 0);
  EXPECT_TRUE(std::isnan(losses[2].item<double>()));
}

TEST_F(CudaKernels, CrossEntropyRefusesLabelsOutsideOfTheVocabulary) {
  for (const int64_t wrong : {9, -1})
    EXPECT_THROW(
        fused::cross_entropy(random({2, 9}, at::kFloat), at::full({2}, wrong, at::kLong), true),
        GridError);
}

TEST_F(CudaKernels, LinearCrossEntropyIsThatOfTheCpu) {
  for (const at::ScalarType type : kFusedTypes) {
    const Tensor x = random({37, 12}, type).requires_grad_();
    const Tensor weight = random({50, 12}, type).requires_grad_();
    const Tensor labels = random_ids(50, {37});
    labels[3] = kIgnoredLabel;
    const Tensor loss = linear_cross_entropy(x, weight, labels);
    const Tensors own = torch::autograd::grad({loss}, {x, weight});
    at::NoGradGuard no_grad;
    const auto [sum, dx, dweight] = fused::linear_cross_entropy(x, weight, labels, true, true);
    EXPECT_NEAR(sum.item<double>(), loss.item<double>(), 2 * roundings(type) * loss.item<double>());
    EXPECT_LE(max_error(dx, own[0].to(at::kDouble)), 4 * roundings(type));
    EXPECT_LE(max_error(dweight, own[1].to(at::kDouble)), 8 * roundings(type));
    const auto [only, no_dx, no_dweight] =
        fused::linear_cross_entropy(x, weight, labels, false, false);
    EXPECT_TRUE(only.equal(sum));
    EXPECT_FALSE(no_dx.defined() || no_dweight.defined());
  }
}

// The CPU adds each row's tokens in their order too.
TEST_F(CudaKernels, EmbeddingsGradientIsTheBitsOfTheCpu) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t dim : {1, 6, 64, 1040}) {
      const Tensor weight = random({11, dim}, type).requires_grad_();
      const Tensor tokens = random_ids(5, {4, 9});
      const Tensor out = embedding(weight, tokens), dout = random(out.sizes(), type);
      const Tensor own = torch::autograd::grad({out}, {weight}, {dout})[0];
      at::NoGradGuard no_grad;
      EXPECT_TRUE(fused::embedding_backward(dout, tokens, 11).equal(own)) << type << dim;
    }
  EXPECT_THROW(
      fused::embedding_backward(random({3, 4}, at::kFloat), at::full({3}, 9, at::kLong), 9),
      GridError);
}

TEST_F(CudaKernels, NothingIsNoLaunch) {
  const Tensor none = at::empty({0, 8}, at::kFloat), weight = random({8}, at::kFloat);
  const auto [y, rstd] = fused::rms_norm_forward(none, weight, 1e-5);
  const auto [dx, dweight] = fused::rms_norm_backward(none, none, weight, rstd);
  EXPECT_EQ(y.sizes(), none.sizes());
  EXPECT_EQ(dx.numel(), 0);
  EXPECT_EQ(dweight.abs().max().item<double>(), 0);
  EXPECT_EQ(fused::swiglu_forward(none, none).numel(), 0);
  const Tensor tokens = at::empty({0}, at::kLong);
  EXPECT_EQ(fused::embedding_backward(none, tokens, 3).abs().max().item<double>(), 0);
  EXPECT_EQ(fused::cross_entropy(none, tokens, true).numel(), 0);
}

at::ScalarType kFormats[] = {at::kFloat8_e4m3fn, at::kFloat8_e5m2};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.view(at::kByte).equal(b.view(at::kByte));
}

// Every bfloat16 there is, and numbers between two of them.
TEST_F(CudaKernels, RoundingToFewBitsIsThatOfAten) {
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

TEST_F(CudaKernels, Float8OfATensorIsTheConverters) {
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

TEST_F(CudaKernels, Float8OfZerosAndOfWhatIsNoNumber) {
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

constexpr fused::AdamWStep kStep{3e-3, 0.9, 0.95, 1e-8, 0.1};

void step(const Weight& w, const std::optional<fused::RandomRounding>& random = {}) {
  fused::adamw_step(w.weight, w.gradient, w.exp_avg, w.exp_avg_sq, w.step, kStep, random);
}

TEST_F(CudaKernels, AdamWIsThatOfAtenRoundedOnce) {
  const at::ScalarType types[][3] = {
      {at::kFloat, at::kFloat, at::kFloat},       {at::kFloat, at::kFloat, at::kBFloat16},
      {at::kBFloat16, at::kBFloat16, at::kFloat}, {at::kBFloat16, at::kBFloat16, at::kBFloat16},
      {at::kBFloat16, at::kFloat, at::kFloat},    {at::kBFloat16, at::kFloat, at::kBFloat16}};
  for (const auto& [w, g, s] : types)
    for (const int64_t size : {1, 77, 9000}) {
      const Weight own = weight_of({size}, w, g, s);
      EXPECT_TRUE(fused::has_adamw(own.weight, own.gradient, own.exp_avg));
      const Weight exact = widened(own);
      at::_fused_adamw_({exact.weight}, {exact.gradient}, {exact.exp_avg}, {exact.exp_avg_sq}, {},
                        {exact.step}, kStep.lr, kStep.beta1, kStep.beta2, kStep.weight_decay,
                        kStep.eps, false, false, {}, {});
      step(own);
      expect_near(own.weight, exact.weight.to(w), "weight");
      expect_near(own.exp_avg, exact.exp_avg.to(s), "exp_avg");
      expect_near(own.exp_avg_sq, exact.exp_avg_sq.to(s), "exp_avg_sq");
    }
  EXPECT_FALSE(fused::has_adamw(at::empty({1}, at::kHalf), at::empty({1}), at::empty({1})));
  EXPECT_FALSE(fused::has_adamw(at::empty({1}), at::empty({1}, at::kBFloat16), at::empty({1})));
}

/// Bits of the update in fp32, by titan's own rounding, of a slice of a weight.
void expect_rounded_as_the_cpu(const std::vector<int64_t>& whole, const nn::Slice& slice) {
  constexpr uint64_t kSeed = 5;
  const std::string name = "layers.0.weight";
  Weight own = weight_of(slice.sizes, at::kBFloat16, at::kBFloat16, at::kFloat);
  const Weight wide = widened(own);
  step(wide);
  const Tensor expected = at::empty(slice.sizes, at::kBFloat16);
  nn::round_stochastically(expected, wide.weight, kSeed, name, 7, whole, slice);
  step(own,
       fused::RandomRounding{XXH3_64bits_withSeed(name.data(), name.size(), kSeed), slice.sizes[1],
                             slice.offsets[0] * whole[1] + slice.offsets[1], whole[1]});
  EXPECT_TRUE(own.weight.equal(expected));
  EXPECT_FALSE(own.weight.equal(wide.weight.to(at::kBFloat16)));
}

TEST_F(CudaKernels, AdamWRoundsAtRandomWithTheBitsOfTheCpu) {
  expect_rounded_as_the_cpu({40, 72}, {{0, 0}, {40, 72}});
  expect_rounded_as_the_cpu({40, 72}, {{13, 0}, {9, 72}});
  expect_rounded_as_the_cpu({40, 73}, {{3, 5}, {30, 41}});
}

TEST_F(CudaKernels, ResultsAreTheSameInAnyOrderOfThreads) {
  const Tensor x = random({20, 264}, at::kBFloat16), dy = random({20, 264}, at::kBFloat16);
  const Tensor weight = random({264}, at::kBFloat16), tokens = random_ids(6, {20});
  const Tensor labels = random_ids(264, {20});
  expect_same_in_any_order([&] {
    const auto [y, rstd] = fused::rms_norm_forward(x, weight, 1e-5);
    const auto [dx, dweight] = fused::rms_norm_backward(dy, x, weight, rstd);
    const auto [dgate, dup] = fused::swiglu_backward(dy, x, x);
    const Tensor logits = x.clone();
    const Tensor losses = fused::cross_entropy(logits, labels, true);
    const auto [values, scale] = fused::quantize_tensor(x, at::kFloat8_e4m3fn, false);
    return Tensors{y,
                   rstd,
                   dx,
                   dweight,
                   dgate,
                   dup,
                   losses,
                   logits,
                   scale,
                   values.view(at::kByte),
                   fused::embedding_backward(dy, tokens, 6)};
  });
}

}  // namespace
}  // namespace titan::ops::testing
