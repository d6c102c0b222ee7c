#include "products.h"

#include <ATen/ops/mm.h>

#include "round_trip.h"

namespace titan::float8 {

using at::Tensor;

bool Float8Products::uses_maximum() const {
  return recipe_.output.operands->left.granularity == Granularity::tensor;
}

/// `dim`: the one that the product adds up over. `maximum`: of the whole, where it is known.
Float8Products::Scaled Float8Products::scale(const Tensor& x, const Operand& operand, int64_t dim,
                                             const Tensor& maximum) const {
  const Tensor largest = operand.granularity == Granularity::row ? largest_along(x, dim)
                         : maximum.defined()                     ? maximum
                                                                 : quantized::largest_magnitude(x);
  return {x, scale_of(largest, operand.format, recipe_.rounding), operand.format};
}

Float8Products::Scaled Float8Products::scale_weight(const Tensor& weight, const Operand& operand,
                                                    int64_t dim) const {
  if (operand.granularity == Granularity::row) return scale(weight, operand, dim);
  return {weight, weight_scale_->value(), operand.format};
}

Tensor Float8Products::multiply(const Scaled& left, const Scaled& right, at::ScalarType dtype,
                                Accumulation accumulation) const {
  const auto turned = [](const Tensor& x, const Scaled& operand) {
    return operand.is_transposed && x.dim() == 2 ? x.t() : x;
  };
  if (arithmetic_ == Arithmetic::by_definition) {
    const auto narrowed = [&](const Scaled& operand) {
      return turned(round_trip(operand.x, operand.scale, operand.format), operand);
    };
    return at::mm(narrowed(left), narrowed(right)).to(dtype);
  }
  const auto quantized = [&](const Scaled& operand) {
    return Quantized{turned(cast(operand.x, operand.scale, operand.format), operand),
                     turned(operand.scale, operand)};
  };
  return multiply_by_device(quantized(left), quantized(right), dtype, accumulation);
}

Tensor Float8Products::output(const Tensor& x, const Tensor& weight,
                              const Tensor& x_maximum) const {
  const auto& [left, right] = *recipe_.output.operands;
  Scaled w = scale_weight(weight, right, 1);
  w.is_transposed = true;
  return multiply(scale(x, left, 1, x_maximum), w, x.scalar_type(), Accumulation::fast);
}

Tensor Float8Products::grad_input(const Tensor& grad, const Tensor& weight) const {
  const auto& [left, right] = *recipe_.grad_input.operands;
  return multiply(scale(grad, left, 1), scale_weight(weight, right, 0), grad.scalar_type(),
                  Accumulation::full);
}

Tensor Float8Products::grad_weight(const Tensor& grad, const Tensor& x) const {
  if (!recipe_.grad_weight.operands) return at::mm(grad.t(), x);
  const auto& [left, right] = *recipe_.grad_weight.operands;
  Scaled g = scale(grad, left, 0);
  g.is_transposed = true;
  return multiply(g, scale(x, right, 0), grad.scalar_type(), Accumulation::full);
}

Tensor Float8Gather::encode(const Tensor& shard) {
  return cast(shard.to(compute_dtype_), scale_->value(), wire_dtype());
}

void Float8Gather::decode(const Tensor& wire, const Tensor& value) {
  value.copy_(dequantize({wire, scale_->value()}));
}

}  // namespace titan::float8
