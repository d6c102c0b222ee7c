// float8 operations, optional for devices. There is no composed form here: quantizing plugins have
// their own, for scales that they know.
#include <titan/ops/quantize.h>

#include <titan/error.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {
namespace {

const auto& of_tensor() {
  static const auto operation = find_operation<Float8OfTensor>("titan::float8_of_tensor");
  return operation;
}
const auto& of_rows() {
  static const auto operation = find_operation<Float8OfRows>("titan::float8_of_rows");
  return operation;
}
const auto& by_scale() {
  static const auto operation = find_operation<Float8ByScale>("titan::float8_by_scale");
  return operation;
}

bool to_power_of_two(Float8Scale rounding) {
  return rounding == Float8Scale::down_to_power_of_two;
}

}  // namespace

bool has_float8(const Tensor& x) {
  const bool has_type = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  const auto key = x.options().computeDispatchKey();
  return has_type && of_tensor().hasKernelForDispatchKey(key) &&
         of_rows().hasKernelForDispatchKey(key) && by_scale().hasKernelForDispatchKey(key);
}

Float8 float8_of_tensor(const Tensor& x, at::ScalarType format, Float8Scale rounding) {
  TITAN_ASSERT(has_float8(x), x.toString());
  BelowAutograd guard;
  auto [values, scale] = of_tensor().call(x, format, to_power_of_two(rounding));
  return {values, scale};
}

Float8 float8_of_rows(const Tensor& x, Float8Scale rounding) {
  TITAN_ASSERT(has_float8(x), x.toString());
  BelowAutograd guard;
  auto [values, scale] = of_rows().call(x, to_power_of_two(rounding));
  return {values, scale};
}

Tensor float8_by_scale(const Tensor& x, const Tensor& scale, at::ScalarType format) {
  TITAN_ASSERT(has_float8(x), x.toString());
  BelowAutograd guard;
  return by_scale().call(x, scale, format);
}

}  // namespace titan::ops
