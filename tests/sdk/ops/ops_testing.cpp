#include "tests/sdk/ops/ops_testing.h"

#include <cmath>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <titan/error.h>
#include <torch/csrc/autograd/autograd.h>

namespace titan::ops::testing {

at::Generator& generator() {
  static at::Generator generator = at::detail::createCPUGenerator(1);
  static std::string owner;
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test->name() != owner) {
    owner = test->name();
    generator.set_current_seed(1);
  }
  return generator;
}

Tensor random(at::IntArrayRef shape, at::ScalarType type) {
  return at::randn(shape, generator(), at::TensorOptions().dtype(at::kDouble)).to(type);
}

Tensor random_ids(int64_t limit, at::IntArrayRef shape) {
  return at::randint(limit, shape, generator(), at::TensorOptions().dtype(at::kLong));
}

Tensors leaves(const Tensors& inputs, at::ScalarType type) {
  Tensors out;
  for (const Tensor& input : inputs) {
    if (!input.is_floating_point()) {
      out.push_back(input);
    } else {
      out.push_back(input.detach().to(type, false, /*copy=*/true).requires_grad_());
    }
  }
  return out;
}

Tensors differentiable(const Tensors& inputs) {
  Tensors out;
  for (const Tensor& input : inputs) {
    if (input.requires_grad()) out.push_back(input);
  }
  return out;
}

Tensors outputs_and_gradients(const Function& f, const Tensors& inputs, const Tensors& directions) {
  Tensors outputs = f(inputs);
  Tensors seeds;
  for (size_t i = 0; i < outputs.size(); ++i) {
    seeds.push_back(directions[i].to(outputs[i].scalar_type()));
  }
  Tensors gradients = torch::autograd::grad(outputs, differentiable(inputs), seeds);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  return outputs;
}

Tensors directions_for(const Function& f, const Tensors& inputs) {
  Tensors directions;
  for (const Tensor& output : f(inputs)) directions.push_back(random(output.sizes()));
  return directions;
}

double max_error(const Tensor& value, const Tensor& exact) {
  if (exact.numel() == 0) return 0;
  return (value.detach().to(at::kDouble) - exact.detach()).abs().max().item<double>();
}

void expect_as_exact_as(const Function& reference, const Function& f, const Tensors& inputs,
                        at::ScalarType type, const Slack& slack) {
  const Tensors rounded = leaves(leaves(inputs, type), at::kDouble);
  const Tensors directions = [&] {
    Tensors out;
    for (const Tensor& d : directions_for(reference, rounded)) {
      out.push_back(d.to(type).to(at::kDouble));
    }
    return out;
  }();
  const Tensors exact = outputs_and_gradients(reference, rounded, directions);
  const Tensors composed = outputs_and_gradients(reference, leaves(inputs, type), directions);
  const Tensors fused = outputs_and_gradients(f, leaves(inputs, type), directions);
  ASSERT_EQ(fused.size(), exact.size());
  const double epsilon = type == at::kFloat ? 0x1p-24 : type == at::kHalf ? 0x1p-11 : 0x1p-8;
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(fused[i].sizes(), exact[i].sizes()) << "result " << i;
    const double largest = exact[i].numel() ? exact[i].abs().max().item<double>() : 0;
    EXPECT_LE(max_error(fused[i], exact[i]), slack.factor * max_error(composed[i], exact[i]) +
                                                 slack.roundings * epsilon * largest +
                                                 slack.absolute)
        << "result " << i << " (outputs first, then gradients), largest value " << largest;
  }
}

void expect_gradients_by_differences(const Function& f, const Tensors& inputs) {
  const Tensors x = leaves(inputs, at::kDouble);
  const Tensors directions = directions_for(f, x);
  const size_t num_outputs = directions.size();
  const Tensors results = outputs_and_gradients(f, x, directions);
  const auto value = [&](const Tensors& at_x) {
    at::NoGradGuard no_grad;
    const Tensors outputs = f(at_x);
    double sum = 0;
    for (size_t i = 0; i < num_outputs; ++i) {
      sum += (outputs[i].detach().to(at::kDouble) * directions[i]).sum().item<double>();
    }
    return sum;
  };
  constexpr double kStep = 1e-6;
  size_t gradient = num_outputs;
  for (const Tensor& input : x) {
    if (!input.requires_grad()) continue;
    const Tensor analytic = results[gradient++].contiguous();
    Tensor flat = input.detach().view({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const double old = flat[i].item<double>();
      flat[i].fill_(old + kStep);
      const double above = value(x);
      flat[i].fill_(old - kStep);
      const double below = value(x);
      flat[i].fill_(old);
      const double numeric = (above - below) / (2 * kStep);
      ASSERT_NEAR(analytic.view({-1})[i].item<double>(), numeric, 1e-6 * (1 + std::abs(numeric)))
          << "input " << gradient - num_outputs - 1 << ", element " << i;
    }
  }
}

void expect_same_for_any_number_of_threads(const Function& f, const Tensors& inputs) {
  const Tensors x = leaves(inputs, at::kFloat);
  const Tensors directions = directions_for(f, x);
  const int before = at::get_num_threads();
  std::vector<Tensors> results;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    results.push_back(outputs_and_gradients(f, x, directions));
  }
  at::set_num_threads(before);
  for (size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(results[0][i].equal(results[1][i])) << "1 and 2 threads, result " << i;
    EXPECT_TRUE(results[0][i].equal(results[2][i])) << "1 and 3 threads, result " << i;
  }
}

void expect_meta_like_real(const Function& f, const Tensors& inputs, at::ScalarType type) {
  const Tensors real = leaves(inputs, type);
  Tensors meta;
  for (const Tensor& input : real) {
    meta.push_back(input.detach().to(at::kMeta).requires_grad_(input.requires_grad()));
  }
  const Tensors directions = directions_for(f, real);
  Tensors meta_directions;
  for (const Tensor& d : directions) meta_directions.push_back(d.to(at::kMeta));
  const Tensors a = outputs_and_gradients(f, real, directions);
  const Tensors b = outputs_and_gradients(f, meta, meta_directions);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(b[i].is_meta()) << "result " << i;
    EXPECT_EQ(a[i].sizes(), b[i].sizes()) << "result " << i;
    EXPECT_EQ(a[i].strides(), b[i].strides()) << "result " << i;
    EXPECT_EQ(a[i].scalar_type(), b[i].scalar_type()) << "result " << i;
  }
}

void expect_graph_rules(const Function& f, const Tensors& inputs, size_t changed) {
  {
    at::NoGradGuard no_grad;
    for (const Tensor& output : f(leaves(inputs, at::kFloat))) EXPECT_FALSE(output.requires_grad());
  }
  Tensors plain;
  for (const Tensor& input : leaves(inputs, at::kFloat)) plain.push_back(input.detach());
  for (const Tensor& output : f(plain)) EXPECT_FALSE(output.requires_grad());

  const Tensors x = leaves(inputs, at::kFloat);
  const Tensors outputs = f(x);
  EXPECT_THROW(torch::autograd::grad({outputs[0].sum()}, differentiable(x), {}, std::nullopt,
                                     /*create_graph=*/true, /*allow_unused=*/true),
               Error);
  const Tensors again = f(x);
  const Tensor loss = again[0].sum();
  Tensor victim = x[changed].detach();
  victim.add_(1);
  EXPECT_THROW(torch::autograd::grad({loss}, differentiable(x), {}, std::nullopt, false,
                                     /*allow_unused=*/true),
               c10::Error);
}

}  // namespace titan::ops::testing
