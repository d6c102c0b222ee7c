#include "core/exchange/tensor_form.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/ScalarType.h>

#include <titan/error.h>

#include "core/runtime/tensors/dtypes.h"

namespace titan::core {

at::Tensor in_row_order(const at::Tensor& tensor, const TensorForm& form, std::string_view name) {
  const int64_t num_rows = tensor.size(0), half = rows_of_head(num_rows, form, name) / 2;
  const bool from_pairs = form.order == RowOrder::pairs_to_halves;
  return tensor
      .reshape(
          {form.num_heads, from_pairs ? half : 2, from_pairs ? 2 : half, tensor.numel() / num_rows})
      .transpose(1, 2)
      .reshape(tensor.sizes());
}

at::Tensor in_dtype(const at::Tensor& tensor, const std::string& dtype, std::string_view name) {
  const at::ScalarType type = scalar_type(dtype);
  at::Tensor result = tensor.to(type);
  const bool narrows = c10::promoteTypes(tensor.scalar_type(), type) != type;
  if (!narrows || at::isfinite(result).all().item<bool>()) return result;
  const at::Tensor lost = at::isfinite(tensor).logical_and(at::isfinite(result).logical_not());
  TITAN_CHECK(!lost.any().item<bool>(), data, "tensor ", name, " holds ",
              tensor.masked_select(lost)[0].item<double>(), ", which ", dtype,
              " cannot hold; choose another dtype");
  return result;
}

int64_t rows_of_head(int64_t num_rows, const TensorForm& form, std::string_view name) {
  TITAN_CHECK(form.num_heads > 0 && num_rows % (2 * form.num_heads) == 0, data, "tensor ", name,
              " has ", num_rows, " rows, which do not divide into ", form.num_heads,
              " heads of even size");
  return num_rows / form.num_heads;
}

at::Tensor in_form(const at::Tensor& tensor, const TensorForm& form, std::string_view name) {
  at::NoGradGuard no_grad;
  const bool reorders = form.order != RowOrder::as_stored && tensor.numel() > 0;
  const at::Tensor rows = reorders ? in_row_order(tensor, form, name) : tensor;
  return in_dtype(rows, form.dtype, name).contiguous();
}

}  // namespace titan::core
