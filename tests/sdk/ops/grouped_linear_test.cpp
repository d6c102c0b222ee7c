// grouped_linear and its layer, against one ATen product per group and against ATen's own grouped
// product.
#include <titan/ops/grouped_linear.h>

#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <titan/nn/grouped_linear.h>

#include "tests/plugins/error_of.h"
#include "tests/sdk/nn/layer_fixture.h"

namespace titan::ops::grouped_linear_test {
namespace {

using at::Tensor;

constexpr int64_t kIn = 16, kOut = 24;

Tensor made_up(at::IntArrayRef shape, at::ScalarType type, double phase) {
  return at::sin(at::arange(c10::multiply_integers(shape), at::kDouble) * 0.7 + phase)
      .reshape(shape)
      .to(type);
}

struct Result {
  Tensor y, dx, dweight;
};

template <class Function>
Result run(const Function& function, const std::vector<int64_t>& rows, at::ScalarType type) {
  int64_t num_rows = 0;
  for (const int64_t count : rows) num_rows += count;
  Tensor x = made_up({num_rows, kIn}, type, 0.1).set_requires_grad(true);
  Tensor weight =
      made_up({static_cast<int64_t>(rows.size()), kOut, kIn}, type, 0.2).set_requires_grad(true);
  const Tensor y = function(x, weight);
  y.backward(made_up(y.sizes(), type, 0.3));
  return {y.detach(), x.grad(), weight.grad()};
}

/// One layer per group.
Tensor by_layers(const Tensor& x, const Tensor& weight, const std::vector<int64_t>& rows) {
  std::vector<Tensor> parts;
  int64_t first = 0;
  for (size_t group = 0; group < rows.size(); first += rows[group++])
    parts.push_back(
        at::linear(x.narrow(0, first, rows[group]), weight[static_cast<int64_t>(group)]));
  return at::cat(parts);
}

TEST(GroupedLinear, EqualsALayerPerGroup) {
  for (const std::vector<int64_t>& rows :
       std::vector<std::vector<int64_t>>{{5, 3, 8}, {0, 7, 0, 1}, {0, 0}, {4}})
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const auto ours = run(
          [&](const Tensor& x, const Tensor& w) { return grouped_linear(x, w, rows); }, rows, type);
      const auto theirs =
          run([&](const Tensor& x, const Tensor& w) { return by_layers(x, w, rows); }, rows, type);
      const double tolerance = type == at::kDouble ? 1e-13 : type == at::kFloat ? 1e-5 : 2e-2;
      EXPECT_TRUE(at::allclose(ours.y, theirs.y, tolerance, tolerance)) << rows << type;
      EXPECT_TRUE(at::allclose(ours.dx, theirs.dx, tolerance, tolerance)) << rows << type;
      EXPECT_TRUE(at::allclose(ours.dweight, theirs.dweight, tolerance, tolerance)) << rows << type;
      for (size_t group = 0; group < rows.size(); ++group)
        if (rows[group] == 0) {
          EXPECT_TRUE(at::equal(ours.dweight[static_cast<int64_t>(group)],
                                at::zeros({kOut, kIn}, ours.dweight.options())));
        }
    }
}

TEST(GroupedLinear, EqualsTheGroupedProductOfATen) {
  const std::vector<int64_t> rows = {5, 0, 3, 8};
  const Tensor ends = at::tensor({5, 5, 8, 16}, at::kInt);
  const auto ours =
      run([&](const Tensor& x, const Tensor& w) { return grouped_linear(x, w, rows); }, rows,
          at::kFloat);
  const auto theirs =
      run([&](const Tensor& x,
              const Tensor& w) { return at::_grouped_mm(x, w.transpose(-2, -1), ends); },
          rows, at::kFloat);
  EXPECT_TRUE(at::allclose(ours.y, theirs.y, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(ours.dx, theirs.dx, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(ours.dweight, theirs.dweight, 1e-5, 1e-5));
}

TEST(GroupedLinear, KnowsItsShapesWithoutMemory) {
  const Tensor x = at::empty({8, kIn}, at::TensorOptions().device(at::kMeta));
  const Tensor weight = at::empty({2, kOut, kIn}, x.options());
  EXPECT_EQ(grouped_linear(x, weight, {3, 5}).sizes(), at::IntArrayRef({8, kOut}));
}

TEST(GroupedLinear, RefusesWhatDoesNotFit) {
  const Tensor x = at::zeros({8, kIn}), weight = at::zeros({2, kOut, kIn});
  const auto refusal = [&](const Tensor& x, const std::vector<int64_t>& rows) {
    return titan::testing::error_of([&] { grouped_linear(x, weight, rows); }).message();
  };
  for (const std::vector<int64_t>& rows :
       std::vector<std::vector<int64_t>>{{4, 3}, {8}, {9, -1}, {4, 4, 0}})
    EXPECT_NE(refusal(x, rows).find("the rows of 2 groups must be 8 in all, got "),
              std::string::npos)
        << rows;
  EXPECT_NE(refusal(at::zeros({8, kIn + 1}), {4, 4}).find("do not fit: [8, 17]"),
            std::string::npos);
}

/// Twice the result of another kernel.
class Doubled final : public nn::GroupedLinearKernel {
 public:
  explicit Doubled(std::unique_ptr<nn::GroupedLinearKernel> inner) : inner_(std::move(inner)) {}
  Tensor matmul(const Tensor& x, nn::Parameter& weight, at::IntArrayRef rows) override {
    return inner_->matmul(x, weight, rows) * 2;
  }

 private:
  std::unique_ptr<nn::GroupedLinearKernel> inner_;
};

/// Experts under torchtitan's names: "experts.w1" without ".weight".
class Experts final : public nn::Module {
 public:
  Experts() {
    add_parameter("w1", {2, kOut, kIn}, nn::Init::normal(0, 1));
    w1_ = &add_module("w1", std::make_unique<nn::GroupedLinear>(shared_parameter("w1")));
  }
  Tensor forward(const Tensor& x, const Batch&) override { return (*w1_)(x, {3, 5}); }
  nn::GroupedLinear& w1() { return *w1_; }

 private:
  nn::GroupedLinear* w1_;
};

TEST(GroupedLinear, ComputesThroughItsSeamAndWhatGoesAroundIt) {
  Experts experts;
  titan::testing::materialize(experts);
  EXPECT_EQ(experts.w1().weight().name(), "m.w1");  // not m.w1.weight
  const Tensor x = made_up({8, kIn}, at::kFloat, 0.4);
  const Tensor plain = experts(x, {});
  EXPECT_TRUE(at::equal(plain, grouped_linear(x, experts.w1().weight().value(), {3, 5})));

  experts.w1().wrap_kernel("doubled", [](std::unique_ptr<nn::GroupedLinearKernel> inner) {
    return std::make_unique<Doubled>(std::move(inner));
  });
  experts.w1().wrap([](const Tensor& in, const Batch& batch, const nn::Next& next) {
    return next(in, batch) + 1;
  });
  EXPECT_TRUE(at::equal(experts(x, {}), plain * 2 + 1));
  EXPECT_EQ(experts.w1().computed_by(), "doubled around it");
  const auto refuse = [&] {
    experts.w1().set_kernel("float8", std::make_unique<Doubled>(nullptr));
  };
  const std::string refusal = titan::testing::error_of(refuse).message();
  EXPECT_NE(refusal.find("'m.w1'"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("doubled"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace titan::ops::grouped_linear_test
