#include "products.h"

#include <ATen/ops/mm.h>
#include <titan/error.h>
#include <titan/ops/quantize.h>

#include "round_trip.h"

namespace titan::float8 {

using at::Tensor;

namespace {

/// x (rows, columns), with one scale or one for each slice along `dim`. Values are contiguous along
/// `dim`, along which the device's matrix units read both operands.
Quantized quantize_on_device(const Tensor& x, const Operand& operand, int64_t dim,
                             ScaleRounding rounding) {
  const ops::Float8Scale scale = rounding == ScaleRounding::down_to_power_of_two
                                     ? ops::Float8Scale::down_to_power_of_two
                                     : ops::Float8Scale::as_it_is;
  if (dim == 0) {
    const Quantized turned = quantize_on_device(x.t(), operand, 1, rounding);
    return {turned.values.t(), turned.scale.t()};
  }
  if (operand.granularity == Granularity::tensor) {
    const ops::Float8 whole = ops::float8_of_tensor(x, operand.format, scale);
    return {whole.values, whole.scale};
  }
  TITAN_ASSERT(operand.format == at::kFloat8_e4m3fn, "a scale for each row of ", operand.format);
  const ops::Float8 rows = ops::float8_of_rows(x, scale);
  return {rows.values, rows.scale};
}

/// The same with a known scale.
Tensor cast_on_device(const Tensor& x, const Tensor& scale, at::ScalarType format, int64_t dim) {
  return dim == 1 ? ops::float8_by_scale(x, scale, format)
                  : ops::float8_by_scale(x.t(), scale, format).t();
}

}  // namespace

bool Float8Products::is_quantized_by_device(const Tensor& x) const {
  return arithmetic_ == Arithmetic::by_device && ops::has_float8(x);
}

bool Float8Products::uses_maximum(const Tensor& x) const {
  return !is_quantized_by_device(x) &&
         recipe_.output.operands->left.granularity == Granularity::tensor;
}

/// `dim`: the summed dimension of the product. `maximum`: of all of x, if known.
Float8Products::Scaled Float8Products::scale(const Tensor& x, const Operand& operand, int64_t dim,
                                             const Tensor& maximum) const {
  if (is_quantized_by_device(x)) {
    const auto own = quantize_on_device(x, operand, dim, recipe_.rounding);
    return {.x = x, .scale = own.scale, .format = operand.format, .values = own.values};
  }
  const Tensor largest = operand.granularity == Granularity::row ? largest_along(x, dim)
                         : maximum.defined()                     ? maximum
                                                                 : quantized::largest_magnitude(x);
  return {x, scale_of(largest, operand.format, recipe_.rounding), operand.format};
}

Float8Products::Scaled Float8Products::scale_weight(const Tensor& weight, const Operand& operand,
                                                    int64_t dim) const {
  if (operand.granularity == Granularity::row) return scale(weight, operand, dim);
  Scaled scaled{weight, weight_scale_->value(), operand.format};
  if (is_quantized_by_device(weight))
    scaled.values = cast_on_device(weight, scaled.scale, operand.format, dim);
  return scaled;
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
    const Tensor values =
        operand.values.defined() ? operand.values : cast(operand.x, operand.scale, operand.format);
    return Quantized{turned(values, operand), turned(operand.scale, operand)};
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
