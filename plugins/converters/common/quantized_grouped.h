// Kernel of layers of experts that multiply in a narrow format: each group is computed as a linear
// layer (quantized_linear.h). Used by the float8 and mx converters of grouped products.
#pragma once

#include <memory>
#include <utility>

#include <titan/nn/grouped_linear.h>

#include "quantized_linear.h"

namespace titan::quantized {

/// Computes a GroupedLinear group by group by `products`, forward and backward. The rounding of a
/// row or an expert's weight depends on nothing else; the rounding of a weight's gradient depends
/// on the rows of its group. Groups without rows are not computed; their weight's gradient is zero.
/// Saves only x and the weight's value; the weight's half of the backward goes to
/// nn::WeightGradientQueue::current() while it defers.
class QuantizedGroupedKernel final : public nn::GroupedLinearKernel {
 public:
  explicit QuantizedGroupedKernel(std::shared_ptr<const Products> products)
      : products_(std::move(products)) {}
  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight, at::IntArrayRef rows) override;

 private:
  std::shared_ptr<const Products> products_;  // shared with the autograd graphs
};

}  // namespace titan::quantized
