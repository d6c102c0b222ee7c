// Layers of experts whose matrix products are made in a narrow format: each group is a linear layer
// of its own (quantized_linear.h). Used by the float8 and mx converters of grouped products.
#pragma once

#include <memory>
#include <utility>

#include <titan/nn/grouped_linear.h>

#include "quantized_linear.h"

namespace titan::quantized {

/// Computes a GroupedLinear group by group by `products`, forward and backward: what a row or an
/// expert's weight is rounded to depends on nothing else, what a gradient of a weight is rounded to
/// on the rows of its group. Groups without rows are not computed; their weight's gradient is zero.
/// Saves x and the weight's value alone; the weight's half of the backward goes to
/// nn::WeightGradientQueue::current() while it defers.
class QuantizedGroupedKernel final : public nn::GroupedLinearKernel {
 public:
  explicit QuantizedGroupedKernel(std::shared_ptr<const Products> products)
      : products_(std::move(products)) {}
  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight, at::IntArrayRef rows) override;

 private:
  std::shared_ptr<const Products> products_;  // shared with the graphs that were built
};

}  // namespace titan::quantized
