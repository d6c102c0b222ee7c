// The inner loops of titan/ops in all their builds: accuracy of exp, ends of rows, agreement of the
// builds.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ops/kernels/kernels.h"

namespace titan::ops::kernels_test {
namespace {

std::vector<const Kernels*> builds() {
  std::vector<const Kernels*> out{&baseline_kernels()};
  for (const Kernels* build : {avx2_kernels(), avx512_kernels(), avx512_bf16_kernels()})
    if (build != nullptr) out.push_back(build);
  return out;
}

/// Error relative to the exact value, in units of the last place of a float of that size.
double ulps(float value, double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

std::vector<float> randoms(int64_t n, int seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(engine);
  return out;
}

constexpr float kCanary = 12345.0f;

/// n floats, followed by a guard that detects writes past the end.
struct Guarded {
  explicit Guarded(int64_t n, float fill = 0) : data(n + 16, kCanary), n(n) {
    std::fill_n(data.begin(), n, fill);
  }
  float* get() { return data.data(); }
  void check() const {
    for (size_t i = n; i < data.size(); ++i) ASSERT_EQ(data[i], kCanary) << "written past " << n;
  }
  std::vector<float> data;
  int64_t n;
};

void expect_near(const Guarded& a, const Guarded& b, const char* what) {
  a.check();
  b.check();
  for (int64_t i = 0; i < a.n; ++i) {
    ASSERT_NEAR(a.data[i], b.data[i], 2e-6 * (1 + std::abs(a.data[i])))
        << what << ", element " << i << " of " << a.n;
  }
}

TEST(Kernels, ABuildExistsWhereTheCpuHasItsInstructions) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  EXPECT_EQ(avx2_kernels() != nullptr, avx2);
  EXPECT_EQ(avx512_kernels() != nullptr, avx512);
  EXPECT_EQ(avx512_bf16_kernels() != nullptr, bf16);
  const bool of_amd = __builtin_cpu_is("amd");
  EXPECT_EQ(&kernels(), bf16 && of_amd ? avx512_bf16_kernels()
                        : avx512       ? avx512_kernels()
                        : avx2         ? avx2_kernels()
                                       : &baseline_kernels());
#else
  EXPECT_EQ(&kernels(), &baseline_kernels());
#endif
}

TEST(Kernels, ExpIsWithinTwoUlpOverAllFloats) {
  for (const Kernels* build : builds()) {
    double worst = 0;
    std::vector<float> x, y;
    const auto flush = [&] {
      y.resize(x.size());
      build->exp(x.data(), y.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const double exact = std::exp(static_cast<double>(x[i]));
        if (exact > std::numeric_limits<float>::max()) {
          ASSERT_GE(y[i], 3.4028e38f) << x[i];
          continue;
        }
        worst = std::max(worst, ulps(y[i], exact));
      }
      x.clear();
    };
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 977) {
      const uint32_t word = static_cast<uint32_t>(bits);
      float value;
      std::memcpy(&value, &word, sizeof value);
      if (!std::isfinite(value)) continue;
      x.push_back(value);
      if (x.size() == 4096) flush();
    }
    for (float value = -104; value < 88.8f; value += 1.7e-4f) {
      x.push_back(value);
      if (x.size() == 4095) flush();
    }
    flush();
    EXPECT_LE(worst, 2.0);
    RecordProperty("worst_ulps", std::to_string(worst));
  }
}

TEST(Kernels, ExpKeepsSpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{0.0f, -0.0f, infinity, -infinity, NAN, 89.0f, 1e30f, -1e30f, -104.0f};
  for (const Kernels* build : builds()) {
    std::vector<float> y(x.size());
    build->exp(x.data(), y.data(), x.size());
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], infinity);
    EXPECT_EQ(y[3], 0);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], infinity);
    EXPECT_EQ(y[6], infinity);
    EXPECT_EQ(y[7], 0);
    EXPECT_EQ(y[8], 0);
  }
}

void expect_agreement(const Kernels& a, const Kernels& b) {
  for (int64_t n = 1; n <= 70; ++n) {
    const auto x = randoms(n, 1), y = randoms(n, 2), z = randoms(n, 3);
    Guarded p(n), q(n), r(n, 0.5f), s(n, 0.5f);
    const float rstd = a.rms_norm_forward(x.data(), y.data(), p.get(), n, 1e-5f);
    EXPECT_NEAR(rstd, b.rms_norm_forward(x.data(), y.data(), q.get(), n, 1e-5f), 1e-6 * rstd);
    expect_near(p, q, "rms_norm_forward");
    a.rms_norm_backward(z.data(), x.data(), y.data(), rstd, p.get(), r.get(), n);
    b.rms_norm_backward(z.data(), x.data(), y.data(), rstd, q.get(), s.get(), n);
    expect_near(p, q, "rms_norm_backward dx");
    expect_near(r, s, "rms_norm_backward dweight");
    a.swiglu_forward(x.data(), y.data(), p.get(), n);
    b.swiglu_forward(x.data(), y.data(), q.get(), n);
    expect_near(p, q, "swiglu_forward");
    a.swiglu_backward(z.data(), x.data(), y.data(), p.get(), r.get(), n);
    b.swiglu_backward(z.data(), x.data(), y.data(), q.get(), s.get(), n);
    expect_near(p, q, "swiglu_backward dgate");
    expect_near(r, s, "swiglu_backward dup");
    Guarded u(2 * n), v(2 * n);
    const auto pair = randoms(2 * n, 4);
    a.rope(pair.data(), 2 * n, x.data(), y.data(), 1, u.get(), 1, n);
    b.rope(pair.data(), 2 * n, x.data(), y.data(), 1, v.get(), 1, n);
    expect_near(u, v, "rope");
    std::copy(x.begin(), x.end(), p.data.begin());
    q = p;
    const RowStatistics only = a.softmax_statistics(p.get(), n);
    const RowStatistics first = a.softmax_in_place(p.get(), n);
    const RowStatistics second = b.softmax_in_place(q.get(), n);
    EXPECT_EQ(only.max, first.max);
    EXPECT_EQ(only.sum_exp, first.sum_exp);
    EXPECT_EQ(first.max, *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(second.max, first.max);
    EXPECT_NEAR(second.sum_exp, first.sum_exp, 1e-6 * first.sum_exp);
    expect_near(p, q, "softmax_in_place");
    a.add(p.get(), z.data(), n);
    b.add(q.get(), z.data(), n);
    expect_near(p, q, "add");
  }
}

TEST(Kernels, AllBuildsAgreeForEveryLengthOfRow) {
  for (const Kernels* build : builds()) expect_agreement(baseline_kernels(), *build);
}

}  // namespace
}  // namespace titan::ops::kernels_test
