// Kernel of linear layers that makes their three matrix products in a narrow format, while autograd
// sees and saves wide tensors. Used by the float8 and mx converters, for each expert by
// quantized_grouped.h.
#pragma once

#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <titan/nn/linear.h>

namespace titan::quantized {

/// The products of one layer y = x Wᵀ; each function quantises its operands. All arguments and
/// results are matrices in the dtype of the computation. Pure: the same operands give the same
/// result, so a recomputation repeats it. No graph is recorded.
class Products {
 public:
  virtual ~Products();
  /// Whether `output` uses the largest absolute value of all of x, which activation checkpointing
  /// may then keep.
  virtual bool uses_maximum(const at::Tensor& x) const = 0;
  /// x (rows, in) · weight (out, in)ᵀ. `x_maximum`: a scalar; undefined if unknown or not
  /// uses_maximum(x).
  virtual at::Tensor output(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& x_maximum) const = 0;
  /// grad (rows, out) · weight (out, in)
  virtual at::Tensor grad_input(const at::Tensor& grad, const at::Tensor& weight) const = 0;
  /// grad (rows, out)ᵀ · x (rows, in)
  virtual at::Tensor grad_weight(const at::Tensor& grad, const at::Tensor& x) const = 0;
};

/// The largest absolute value, a scalar in x's dtype; NaN if an element is NaN, 0 without elements.
at::Tensor largest_magnitude(const at::Tensor& x);

/// Throws a config Error if the backward is itself differentiated: rounding has no gradient.
void check_differentiated_once();

/// Computes a Linear by `products`. Saves only x and the weight's value; the weight's half of the
/// backward goes to nn::WeightGradientQueue::current() while it defers.
class QuantizedKernel final : public nn::LinearKernel {
 public:
  explicit QuantizedKernel(std::shared_ptr<const Products> products)
      : products_(std::move(products)) {}
  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override;

 private:
  std::shared_ptr<const Products> products_;  // shared with the autograd graphs
};

}  // namespace titan::quantized
