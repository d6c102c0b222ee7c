// The kernels of the cuda plugin in the grid emulator, in execution orders that a GPU might choose.
// Compared with Titan's CPU operations and ATen's.
#include "plugins/devices/cuda/kernels/fused_ops.h"

#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <titan/ops/embedding.h>
#include <titan/ops/fused_head.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/autograd/autograd.h>

#include "plugins/devices/cuda/composite_ops.h"
#include "plugins/devices/cuda/emulator/emulator.h"
#include "tests/plugins/devices/cuda_kernels_fixture.h"

namespace titan::ops::testing {
namespace {

namespace fused = cuda::fused;
using cuda::emulator::GridError;
using cuda::emulator::Order;
using cuda::emulator::ScopedOrder;

class CudaKernels : public KernelTest {};

constexpr at::ScalarType kFusedTypes[] = {at::kFloat, at::kBFloat16, at::kHalf};

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

// With 600 rows, a block has two. Rows of 2 to 4 accesses per thread stay in registers, or are
// added up in shared memory; 8200 columns exceed that.
TEST_F(CudaKernels, RmsNormAddsTheWeightsGradientOverManyRowsAndColumns) {
  const int64_t shapes[][2] = {{600, 24}, {1100, 8}, {3, 1032}, {2, 1030}, {2, 4100}, {2, 8200}};
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

// Pieces of 8 numbers: 1, 2 and 4 per thread, the last ones only for some threads.
TEST_F(CudaKernels, RmsNormTakesNarrowRowsOfAnyNumberOfAccesses) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf})
    for (const int64_t dim : {2048, 2064, 4104, 8208}) {
      const Tensor x = random({2, dim}, type), residual = random({2, dim}, type);
      const Tensor dy = random({2, dim}, type), dsum = random({2, dim}, type);
      for (const at::ScalarType weight_type : {type, at::kFloat}) {
        const Tensor weight = random({dim}, weight_type);
        const auto [sum, y, rstd] = fused::add_rms_norm_forward(x, residual, weight, 1e-5);
        EXPECT_TRUE(sum.equal(x + residual));
        expect_near(y, std::get<0>(composite::rms_norm_forward(sum, weight, 1e-5)), "y");
        const auto [dx, dweight] = fused::add_rms_norm_backward(dy, dsum, sum, weight, rstd);
        const auto [norm_dx, norm_dweight] = composite::rms_norm_backward(
            dy.to(at::kFloat), sum.to(at::kFloat), weight.to(at::kFloat), rstd);
        expect_near(dx, (norm_dx + dsum.to(at::kFloat)).to(type), "dx");
        expect_near(dweight, norm_dweight.to(weight_type), "dweight");
      }
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
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t dim : {1, 33, 56, 2049}) {
      const Tensor x = random({6, dim}, type);
      const Tensor residual = random({dim, 6}, type).t();  // no row is contiguous
      const Tensor weight = random({dim}, type), dy = random({6, dim}, type);
      const auto [both_sum, both_y, both_rstd] =
          fused::add_rms_norm_forward(x, residual, weight, 1e-5);
      const Tensor sum = x + residual;
      const auto [y, rstd] = fused::rms_norm_forward(sum, weight, 1e-5);
      EXPECT_TRUE(both_sum.equal(sum));
      EXPECT_TRUE(both_y.equal(y));
      EXPECT_TRUE(both_rstd.equal(rstd));
      // narrow accesses add up in another order
      const Tensor narrow_y =
          std::get<1>(fused::add_rms_norm_forward(with_odd_start(x), residual, weight, 1e-5));
      expect_near(narrow_y, y, "y of narrow accesses");
      const Tensor dsum = random({6, dim}, type);
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
    // rows that do not follow each other with one stride
    const Tensor turned = packed.transpose(0, 1);
    expect_near(
        fused::swiglu_forward(turned.narrow(2, 0, columns), turned.narrow(2, columns, columns)),
        composite::swiglu_forward(turned.narrow(2, 0, columns).contiguous(),
                                  turned.narrow(2, columns, columns).contiguous()),
        "out of turned rows");
  }
}

TEST_F(CudaKernels, SwigluBackwardInPlaceIsTheBitsOfTheTwoOperations) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t columns : {1, 33, 64, 2049}) {
      const Tensor dout = random({2, 3, columns}, type), gate = random({2, 3, columns}, type) * 3;
      const Tensor up = random({2, 3, columns}, type);
      const Tensor product = fused::swiglu_forward(gate, up);
      const auto [dgate, dup] = fused::swiglu_backward(dout, gate, up);
      const Tensor d = dout.clone(), g = gate.clone(), u = up.clone();
      composite::swiglu_backward_in_place(d, g, u);
      expect_near(d, product, "composed product");
      expect_near(g, dgate, "composed dgate");
      expect_near(u, dup, "composed dup");
      fused::swiglu_backward_in_place(dout, gate, up);
      EXPECT_TRUE(dout.equal(product)) << type << columns;
      EXPECT_TRUE(gate.equal(dgate)) << type << columns;
      EXPECT_TRUE(up.equal(dup)) << type << columns;
    }
}

TEST_F(CudaKernels, RopeIsThatOfTheCpuBothWays) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t head_dim : {6, 16, 64})
      for (const bool with_positions : {false, true}) {
        const Tensor angles = random({12, head_dim / 2}, at::kFloat);
        const Tensor cos = angles.cos(), sin = angles.sin();
        // q and k next to each other in one projection
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

// Queries, keys and values next to each other in one projection: in place, and into another one.
TEST_F(CudaKernels, RopeIntoIsTheBitsOfRopeInPlaceAndElsewhere) {
  for (const at::ScalarType type : kFusedTypes)
    for (const int64_t head_dim : {10, 16, 64}) {
      const Tensor angles = random({12, head_dim / 2}, at::kFloat);
      const Tensor cos = angles.cos(), sin = angles.sin(), ids = random_ids(12, {2, 9});
      const auto parts = [](const Tensor& all) {
        return std::pair(all.narrow(2, 0, 3), all.narrow(2, 3, 1));
      };
      const Tensor all = random({2, 9, 5, head_dim}, type), elsewhere = at::full_like(all, 7);
      const auto [q, k] = parts(all);
      const auto [q_there, k_there] = parts(elsewhere);
      const auto [q_turned, k_turned] = fused::rope_rotate(q, k, cos, sin, ids, true);
      const Tensor composed = all.clone(), rest = all.narrow(2, 4, 1).clone();
      const auto [q_own, k_own] = parts(composed);
      composite::rope_into(q_own, k_own, cos, sin, ids, true, q_own, k_own);
      expect_near(q_own.contiguous(), q_turned, "composed q");
      expect_near(k_own.contiguous(), k_turned, "composed k");
      fused::rope_into(q, k, cos, sin, ids, true, q_there, k_there);
      fused::rope_into(q, k, cos, sin, ids, true, q, k);
      for (const Tensor& out : {q, q_there}) EXPECT_TRUE(out.equal(q_turned)) << type << head_dim;
      for (const Tensor& out : {k, k_there}) EXPECT_TRUE(out.equal(k_turned)) << type << head_dim;
      EXPECT_TRUE(all.narrow(2, 4, 1).equal(rest));
      EXPECT_TRUE(elsewhere.narrow(2, 4, 1).eq(7).all().item<bool>());
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
    for (const int64_t words : {2, 33, 500, 5001, 36875}) {  // the last: reads ahead, and is odd
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

TEST_F(CudaKernels, LinearCrossEntropyAddsUpTheGradientsOfItsChunks) {
  for (const at::ScalarType type : kFusedTypes) {
    const Tensor x = random({37, 12}, type), weight = random({50, 12}, type);
    const Tensor labels = random_ids(50, {37});
    const auto [whole, whole_dx, whole_dweight] =
        fused::linear_cross_entropy_by_rows(37, x, weight, labels, true, true);
    const auto [sum, dx, dweight] =
        fused::linear_cross_entropy_by_rows(15, x, weight, labels, true, true);
    EXPECT_NEAR(sum.item<double>(), whole.item<double>(), 1e-6 * whole.item<double>());
    EXPECT_LE(max_error(dx, whole_dx.to(at::kDouble)), 4 * roundings(type));
    EXPECT_EQ(dweight.scalar_type(), type);
    EXPECT_LE(max_error(dweight, whole_dweight.to(at::kDouble)), 8 * roundings(type));
    const auto [only_sum, no_dx, only_dweight] =
        fused::linear_cross_entropy_by_rows(15, x, weight, labels, false, true);
    EXPECT_TRUE(only_sum.equal(sum) && only_dweight.equal(dweight) && !no_dx.defined());
  }
}

TEST_F(CudaKernels, LinearCrossEntropyTakesAllRowsWhereTheirLogitsAreSmall) {
  const auto rows_of = [](int64_t rows, int64_t dim, at::ScalarType type) {
    const auto options = at::TensorOptions().device(at::kMeta).dtype(type);
    return fused_head_rows(at::empty({rows, dim}, options), at::empty({128'256, dim}, options));
  };
  EXPECT_EQ(rows_of(0, 4096, at::kBFloat16), 1);
  EXPECT_EQ(rows_of(8192, 4096, at::kBFloat16), 8192);
  EXPECT_EQ(rows_of(16384, 4096, at::kBFloat16), 2048);
  EXPECT_EQ(rows_of(8192, 2048, at::kBFloat16), 2048);
  EXPECT_EQ(rows_of(4096, 4096, at::kFloat), 1024);
}

// The CPU too adds each row's tokens in their order.
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
  const auto [loss, no_dx, zero] =
      fused::linear_cross_entropy(none, weight.view({1, 8}), tokens, true, true);
  EXPECT_EQ(loss.item<double>() + zero.abs().max().item<double>(), 0);
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
