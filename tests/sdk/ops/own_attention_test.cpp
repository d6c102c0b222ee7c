// Titan's attention loops in every build that this CPU runs, in fp32 and bf16, compared with ATen's
// math attention in float64. bf16 may have the error of ATen's flash kernel.
#include "ops/cpu/own_attention.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops_testing.h"

namespace titan::ops::testing::own_attention_test {
namespace {

struct Build {
  const char* name;
  const Kernels* kernels;
};

std::vector<Build> builds() {
  std::vector<Build> out{{"baseline", &baseline_kernels()}};
  for (const Build& build : {Build{"avx2", avx2_kernels()}, Build{"avx512", avx512_kernels()},
                             Build{"avx512_bf16", avx512_bf16_kernels()}})
    if (build.kernels != nullptr) out.push_back(build);
  return out;
}

struct Shape {
  int64_t batch, heads, kv_heads, queries, keys, dim;
  bool causal = true;
};

std::ostream& operator<<(std::ostream& to, const Shape& s) {
  return to << s.batch << " x " << s.heads << " heads on " << s.kv_heads << ", " << s.queries
            << " queries on " << s.keys << " keys of " << s.dim << (s.causal ? ", causal" : "");
}

/// q, k, v and the gradient of the output, (B, heads, S, hd) over (B, S, heads, hd) storage.
Tensors inputs(const Shape& s, at::ScalarType type) {
  Tensors out;
  for (const auto& [rows, heads] : {std::pair{s.queries, s.heads}, std::pair{s.keys, s.kv_heads},
                                    std::pair{s.keys, s.kv_heads}, std::pair{s.queries, s.heads}})
    out.push_back(random({s.batch, rows, heads, s.dim}, type).transpose(1, 2));
  return out;
}

double scale_of(const Shape& s) {
  return 1.1 / std::sqrt(static_cast<double>(s.dim));
}

/// out, dq, dk, dv
Tensors own(const Kernels& kernels, const Tensors& in, const Shape& s) {
  const auto [out, lse] =
      cpu::own_attention_forward(kernels, in[0], in[1], in[2], s.causal, scale_of(s));
  const auto [dq, dk, dv] = cpu::own_attention_backward(kernels, in[3], in[0], in[1], in[2], out,
                                                        lse, s.causal, scale_of(s));
  return {out, dq, dk, dv};
}

/// The same with ATen's composition in `type`.
Tensors by_math(const Tensors& in, const Shape& s, at::ScalarType type) {
  const Tensors x = leaves({in[0], in[1], in[2]}, type);
  const Tensor out = std::get<0>(at::_scaled_dot_product_attention_math(x[0], x[1], x[2], {}, 0,
                                                                        s.causal, {}, scale_of(s),
                                                                        /*enable_gqa=*/true));
  Tensors all = torch::autograd::grad({out}, x, {in[3].to(type)});
  all.insert(all.begin(), out.detach());
  return all;
}

Tensors by_flash(const Tensors& in, const Shape& s) {
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      in[0], in[1], in[2], 0, s.causal, {}, scale_of(s));
  const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      in[3], in[0], in[1], in[2], out, lse, 0, s.causal, {}, scale_of(s));
  return {out, dq, dk, dv};
}

double rms_error(const Tensor& value, const Tensor& exact) {
  return (value.to(at::kDouble) - exact).square().mean().sqrt().item<double>();
}

const char* const kNames[] = {"out", "dq", "dk", "dv"};

void expect_exact_in_fp32(const Build& build, const Shape& s) {
  const Tensors in = inputs(s, at::kFloat);
  const Tensors exact = by_math(in, s, at::kDouble), composed = by_math(in, s, at::kFloat);
  const Tensors found = own(*build.kernels, in, s);
  for (int i = 0; i < 4; ++i) {
    const double largest = exact[i].abs().max().item<double>();
    // dq and dk come from differences of two sums over the head. These leave a rounding error of
    // every summand even where the result is exactly 0. Random inputs differ between CPUs.
    const double summands =
        1e-6 + 5e-8 * static_cast<double>(s.queries + s.keys) + 3e-8 * static_cast<double>(s.dim);
    EXPECT_LE(max_error(found[i], exact[i]),
              3 * max_error(composed[i], exact[i]) + 2 * 0x1p-24 * largest + summands)
        << build.name << " " << kNames[i] << ", " << s;
  }
}

/// Compares the mean over the tensor, since the largest error depends on luck. So does, in a tensor
/// of a few elements, a quarter of a rounding of the largest.
void expect_no_worse_than_flash_in_bf16(const Build& build, const Shape& s) {
  const Tensors in = inputs(s, at::kBFloat16);
  const Tensors exact = by_math(in, s, at::kDouble), flash = by_flash(in, s);
  const Tensors found = own(*build.kernels, in, s);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].scalar_type(), at::kBFloat16);
    EXPECT_TRUE(found[i].transpose(1, 2).is_contiguous());
    const double luck =
        1e-6 + (exact[i].numel() < 2000 ? exact[i].abs().max().item<double>() * 0x1p-10 : 0);
    EXPECT_LE(rms_error(found[i], exact[i]), 1.05 * rms_error(flash[i], exact[i]) + luck)
        << build.name << " " << kNames[i] << ", " << s;
  }
}

/// Many small tensors: threads would wait for each other longer than they compute.
struct OneThread {
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before); }
  int before = at::get_num_threads();
};

TEST(OwnAttention, IsExactInEveryBuildAndWidthOfHead) {
  const OneThread one_thread;
  for (const Build& build : builds())
    for (const int64_t dim : {2, 16, 20, 24, 40, 64, 80, 96, 112, 128}) {
      expect_exact_in_fp32(build, {1, 2, 1, 97, 97, dim});
      expect_no_worse_than_flash_in_bf16(build, {1, 2, 1, 97, 97, dim});
    }
  for (const Build& build : builds()) expect_exact_in_fp32(build, {1, 2, 1, 97, 97, 7});
}

TEST(OwnAttention, IsExactForAnyNumberOfRows) {
  const OneThread one_thread;
  for (const Build& build : builds())
    for (const int64_t rows : {1, 2, 15, 31, 33, 63, 64, 65, 128, 257, 600})
      for (const bool causal : {true, false}) {
        expect_exact_in_fp32(build, {2, 2, 2, rows, rows, 16, causal});
        expect_no_worse_than_flash_in_bf16(build, {2, 2, 2, rows, rows, 16, causal});
      }
  for (const Build& build : builds())
    for (const int64_t queries : {1, 3, 64, 100})
      for (const int64_t keys : {1, 7, 65, 130}) {
        expect_exact_in_fp32(build, {1, 4, 2, queries, keys, 24, false});
        expect_no_worse_than_flash_in_bf16(build, {1, 4, 2, queries, keys, 24, false});
      }
}

TEST(OwnAttention, ReadsRowsWhereverTheyLie) {
  for (const Build& build : builds())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const Shape s{2, 4, 2, 70, 70, 24};
      const Tensors in = inputs(s, type);
      Tensors apart;
      for (const Tensor& x : in) {
        // rows at odd offsets among NaNs that must not be read
        const Tensor room =
            at::zeros({x.size(0), x.size(1), x.size(2), 41}, x.options()).fill_(NAN);
        room.narrow(3, 5, 24).copy_(x);
        apart.push_back(room.narrow(3, 5, 24));
      }
      const Tensors a = own(*build.kernels, in, s), b = own(*build.kernels, apart, s);
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(a[i].equal(b[i])) << build.name << " " << kNames[i];
    }
}

/// Also when a single key head is split into parts.
TEST(OwnAttention, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Build& build : builds())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
      for (const Shape& s : {Shape{1, 4, 1, 300, 300, 16}, Shape{2, 9, 9, 130, 130, 8},
                             Shape{1, 1, 1, 70, 200, 32, false}}) {
        const Tensors in = inputs(s, type);
        at::set_num_threads(1);
        const Tensors one = own(*build.kernels, in, s);
        for (const int n : {2, 3, 5}) {
          at::set_num_threads(n);
          const Tensors many = own(*build.kernels, in, s);
          for (int i = 0; i < 4; ++i)
            EXPECT_TRUE(one[i].equal(many[i])) << build.name << " " << kNames[i] << ", " << s;
        }
        at::set_num_threads(threads);
      }
}

/// NaN or infinite values reach the rows that see them.
TEST(OwnAttention, PassesNaNAndInfinityOn) {
  const OneThread one_thread;
  const Shape s{1, 1, 1, 100, 100, 16};
  for (const Build& build : builds())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
      for (const double value : {static_cast<double>(NAN), static_cast<double>(INFINITY)})
        for (int which = 0; which < 3; ++which) {
          const Tensors in = inputs(s, type);
          in[which].select(2, 40).select(2, 3).fill_(value);
          const Tensor exact = by_math(in, s, at::kDouble)[0], out = own(*build.kernels, in, s)[0];
          for (const int64_t row : {40, 99}) {
            const bool is_finite = exact.select(2, row).isfinite().all().item<bool>();
            if (is_finite) continue;
            EXPECT_FALSE(out.select(2, row).isfinite().all().item<bool>())
                << build.name << " operand " << which << " row " << row << " value " << value;
          }
          EXPECT_TRUE(out.narrow(2, 0, 32).isfinite().all().item<bool>())
              << build.name << ": rows that do not see it, operand " << which;
        }
}

}  // namespace
}  // namespace titan::ops::testing::own_attention_test
