// Layers of experts in float8 and MXFP8 against the definition of their products, expert by expert.
// tests/referee/float8_referee.py compares both with torchao.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <titan/nn/weight_gradients.h>

#include "definitions.h"
#include "grouped_fixture.h"
#include "plugins/converters/float8/products.h"
#include "plugins/converters/mx/grouped_converter.h"
#include "tests/plugins/error_of.h"

namespace titan {
namespace {

using at::Tensor;
using quantized_test::Experts;
using quantized_test::experts_cases;
using quantized_test::narrowed;

/// left (m, k) · right (n, k)ᵀ of rounded matrices.
using Multiply = std::function<Tensor(const Tensor& left, const Tensor& right)>;

struct Narrow {
  const char* name;
  std::shared_ptr<const quantized::Products> products;
  Multiply multiply;
};

std::vector<Narrow> formats() {
  const auto of_float8 = [](const Tensor& left, const Tensor& right) {
    return at::mm(narrowed(left, 1, true), narrowed(right, 1, true).t()).to(left.scalar_type());
  };
  const auto of_mx = [](const Tensor& left, const Tensor& right) {
    const auto narrow = [&](const Tensor& x) {
      return narrowed(x, mx::Rounding::rceil).to(x.scalar_type());
    };
    return at::mm(narrow(left), narrow(right).t());
  };
  return {
      {"float8",
       std::make_shared<float8::Float8Products>(float8::find_recipe("rowwise"), nullptr,
                                                float8::Arithmetic::by_definition),
       of_float8},
      {"mx", std::make_shared<mx::MxProducts>(mx::find_grouped_recipe("mxfp8_emulated")), of_mx}};
}

TEST(GroupedProducts, EqualTheirDefinitionExpertByExpert) {
  for (const Narrow& format : formats())
    for (const auto& c : experts_cases()) {
      Experts experts(c);
      experts.use(format.products);
      const Tensor y = experts.run();
      EXPECT_EQ(y.scalar_type(), c.dtype);
      const Tensor weights = experts.weight(), x = experts.x.detach(), grad = experts.grad;
      int64_t first = 0;
      for (int64_t e = 0; e < experts.num_groups(); ++e) {
        const int64_t count = experts.rows[static_cast<size_t>(e)];
        const Tensor own = x.narrow(0, first, count), g = grad.narrow(0, first, count);
        const Tensor w = weights[e], dw = experts.layer.weight().grad()[e];
        const std::string what = std::string(format.name) + ", expert " + std::to_string(e) +
                                 " with " + std::to_string(count);
        if (count == 0) {
          EXPECT_TRUE(at::equal(dw, at::zeros({c.out, c.in}, dw.options()))) << what;
          continue;
        }
        const auto is_close = [&](const Tensor& found, const Tensor& expected) {
          const double error = ((found - expected).norm() / expected.norm()).item<double>();
          return error < (c.dtype == at::kFloat ? 1e-6 : 1e-3);  // the order of sums may differ
        };
        EXPECT_TRUE(is_close(y.narrow(0, first, count), format.multiply(own, w))) << what;
        EXPECT_TRUE(is_close(experts.x.grad().narrow(0, first, count), format.multiply(g, w.t())))
            << what;
        EXPECT_TRUE(is_close(dw, format.multiply(g.t(), own.t()))) << what;
        // and they differ from the products in high precision
        EXPECT_FALSE(is_close(y.narrow(0, first, count), at::mm(own, w.t()))) << what;
        first += count;
      }
    }
}

TEST(GroupedProducts, PutTheWeightsGradientIntoTheQueueThatDefers) {
  for (const Narrow& format : formats()) {
    Experts experts({{5, 0, 40}, 64, 96, at::kFloat});
    experts.use(format.products);
    experts.run();
    const Tensor whole = experts.layer.weight().grad().clone();
    const Tensor grad_x = experts.x.grad().clone();
    const auto queue = std::make_shared<nn::WeightGradientQueue>();
    const nn::WeightGradientQueue::Scope scope(queue);
    queue->defer();
    experts.run();
    EXPECT_TRUE(at::equal(experts.x.grad(), grad_x));
    EXPECT_FALSE(experts.layer.weight().grad().defined());
    queue->run();
    EXPECT_TRUE(at::equal(experts.layer.weight().grad(), whole));
  }
}

TEST(GroupedProducts, SkipWhatNobodyAsksFor) {
  for (const Narrow& format : formats()) {
    Experts experts({{5, 3}, 64, 96, at::kFloat});
    experts.use(format.products);
    const Tensor trained = experts.run();
    {
      const at::NoGradGuard no_grad;
      const Tensor y = experts.layer(experts.x, experts.rows);
      EXPECT_FALSE(y.requires_grad());
      EXPECT_TRUE(at::equal(y, trained));
    }
    const Tensor grad_x = experts.x.grad().clone();
    nn::GroupedLinear frozen(2, 64, 96, nn::Init::normal(0, 1));
    frozen.set_names("experts");
    frozen.weight().freeze();
    frozen.weight().allocate(c10::kCPU, at::kFloat);
    frozen.weight().value().copy_(experts.weight());
    frozen.set_kernel("test", std::make_unique<quantized::QuantizedGroupedKernel>(format.products));
    experts.x.mutable_grad() = Tensor();
    frozen(experts.x, experts.rows).backward(experts.grad);
    EXPECT_TRUE(at::equal(experts.x.grad(), grad_x));
    EXPECT_FALSE(frozen.weight().grad().defined());
  }
}

TEST(GroupedProducts, RunOnMeta) {
  for (const Narrow& format : formats()) {
    const at::TensorOptions meta = at::TensorOptions().device(c10::kMeta).dtype(at::kBFloat16);
    nn::GroupedLinear layer(3, 64, 96, nn::Init::normal(0, 1));
    layer.set_names("experts");
    layer.weight().allocate(c10::kMeta, at::kBFloat16);
    layer.set_kernel("test", std::make_unique<quantized::QuantizedGroupedKernel>(format.products));
    const Tensor x = at::zeros({9, 64}, meta).set_requires_grad(true);
    const Tensor y = layer(x, {4, 0, 5});
    EXPECT_EQ(y.sizes(), at::IntArrayRef({9, 96}));
    y.backward(at::empty_like(y));
    EXPECT_EQ(x.grad().sizes(), x.sizes());
    EXPECT_EQ(layer.weight().grad().sizes(), at::IntArrayRef({3, 96, 64}));
  }
}

TEST(GroupedProducts, RefuseRowsThatDoNotFit) {
  Experts experts({{5, 3}, 64, 96, at::kFloat});
  experts.use(formats().front().products);
  for (const std::vector<int64_t>& rows :
       std::vector<std::vector<int64_t>>{{5, 2}, {8}, {9, -1}, {5, 3, 0}}) {
    experts.rows = rows;
    EXPECT_TRUE(testing::holds(testing::error_of([&] { experts.run(); }).what(),
                               "the rows of 2 experts must be 8 in all, got "));
  }
}

}  // namespace
}  // namespace titan
