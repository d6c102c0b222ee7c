// A layer of experts with a converter's kernel, run forward and backward. Used by the tests of
// grouped float8 and mx.
#pragma once

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <titan/nn/grouped_linear.h>

#include "layer_fixture.h"
#include "plugins/converters/common/quantized_grouped.h"

namespace titan::quantized_test {

struct ExpertsCase {
  std::vector<int64_t> rows;  ///< of each expert
  int64_t in, out;
  at::ScalarType dtype;
};

/// With experts that have no rows, one row, or a number of rows that is not a multiple of the block
/// size.
inline std::vector<ExpertsCase> experts_cases() {
  std::vector<ExpertsCase> cases;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const std::vector<int64_t>& rows :
         std::vector<std::vector<int64_t>>{{32, 0, 7, 70}, {1, 33}, {0, 0}, {64}})
      cases.push_back({rows, 64, 96, dtype});
  return cases;
}

/// A layer, its input and the gradient of its output.
struct Experts {
  explicit Experts(const ExpertsCase& c)
      : rows(c.rows),
        layer(num_groups(), c.in, c.out, nn::Init::normal(0, 1)),
        x(numbers({num_rows(), c.in}, c.dtype, 1)),
        grad(numbers({num_rows(), c.out}, c.dtype, 1e-4)) {
    layer.set_names("experts");
    layer.weight().allocate(c10::kCPU, c.dtype);
    const at::NoGradGuard no_grad;
    at::Tensor(layer.weight().value())
        .copy_(
            numbers({num_groups() * c.out, c.in}, c.dtype, 0.02).view({num_groups(), c.out, c.in}));
    x.set_requires_grad(true);
  }

  int64_t num_groups() const { return static_cast<int64_t>(rows.size()); }
  int64_t num_rows() const { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

  void use(std::shared_ptr<const quantized::Products> products) {
    layer.set_kernel("test",
                     std::make_unique<quantized::QuantizedGroupedKernel>(std::move(products)));
  }
  /// Runs forward and backward; drops earlier gradients.
  at::Tensor run() {
    x.mutable_grad() = at::Tensor();
    layer.weight().clear_gradient();
    const at::Tensor y = layer(x, rows);
    y.backward(grad);
    return y.detach();
  }
  at::Tensor weight() { return layer.weight().value().detach(); }

  std::vector<int64_t> rows;
  nn::GroupedLinear layer;
  at::Tensor x, grad;
};

}  // namespace titan::quantized_test
