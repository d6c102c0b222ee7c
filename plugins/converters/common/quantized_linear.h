// A linear layer whose three matrix products are made in a narrow format while autograd sees and
// saves wide tensors. Used by the float8 and mx converters, for each expert by quantized_grouped.h.
#pragma once

#include <memory>
#include <utility>

#include <ATen/core/Tensor.h>
#include <titan/nn/linear.h>

namespace titan::quantized {

/// The products of one layer y = x Wᵀ; each quantises its operands itself. All tensors are matrices
/// in the dtype of the computation, and so are the results. Pure: the same operands give the same
/// result, so a recomputation repeats it. No graph is recorded.
class Products {
 public:
  virtual ~Products();
  /// Whether `output` wants the largest absolute value of all of x: it is then worth keeping where
  /// activations are recomputed.
  virtual bool uses_maximum(const at::Tensor& x) const = 0;
  /// x (rows, in) · weight (out, in)ᵀ. `x_maximum`: a scalar; undefined unless uses_maximum(x), or
  /// where nobody has computed it.
  virtual at::Tensor output(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& x_maximum) const = 0;
  /// grad (rows, out) · weight (out, in)
  virtual at::Tensor grad_input(const at::Tensor& grad, const at::Tensor& weight) const = 0;
  /// grad (rows, out)ᵀ · x (rows, in)
  virtual at::Tensor grad_weight(const at::Tensor& grad, const at::Tensor& x) const = 0;
};

/// The largest absolute value, a scalar in x's dtype; not a number when one element is not. 0 for
/// no elements.
at::Tensor largest_magnitude(const at::Tensor& x);

/// Throws a config Error where a backward is itself differentiated: the rounding has no gradient.
void check_differentiated_once();

/// Computes a Linear by `products`. Saves x and the weight's value alone; the weight's half of the
/// backward goes to nn::WeightGradientQueue::current() while it defers.
class QuantizedKernel final : public nn::LinearKernel {
 public:
  explicit QuantizedKernel(std::shared_ptr<const Products> products)
      : products_(std::move(products)) {}
  at::Tensor matmul(const at::Tensor& x, nn::Parameter& weight) override;

 private:
  std::shared_ptr<const Products> products_;  // shared with the graphs that were built
};

}  // namespace titan::quantized
