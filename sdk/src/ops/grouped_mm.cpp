// grouped_mm as a loop over groups: for doubles and for devices without a better kernel.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/mm.h>
#include <torch/library.h>

#include "autograd.h"
#include "signatures.h"

namespace titan::ops {

std::vector<GroupRows> rows_of_groups(at::IntArrayRef rows) {
  std::vector<GroupRows> out;
  out.reserve(rows.size());
  int64_t first = 0;
  for (size_t group = 0; group < rows.size(); first += rows[group++])
    if (rows[group] > 0)
      out.push_back({.group = static_cast<int64_t>(group), .first = first, .count = rows[group]});
  return out;
}

Tensor grouped_mm_by_groups(const Tensor& x, const Tensor& weight, at::IntArrayRef rows) {
  BelowAutograd guard;
  Tensor out = at::empty({x.size(0), weight.size(2)}, x.options());
  for (const auto& [group, first, count] : rows_of_groups(rows))
    mm_into(out.narrow(0, first, count), x.narrow(0, first, count), weight[group]);
  return out;
}

Tensor grouped_mm_weight_grad_by_groups(const Tensor& grad, const Tensor& x, at::IntArrayRef rows) {
  BelowAutograd guard;
  Tensor out =
      at::zeros({static_cast<int64_t>(rows.size()), grad.size(1), x.size(1)}, grad.options());
  for (const auto& [group, first, count] : rows_of_groups(rows))
    mm_into(out[group], grad.narrow(0, first, count).t(), x.narrow(0, first, count));
  return out;
}

}  // namespace titan::ops

TORCH_LIBRARY_IMPL(titan, CompositeExplicitAutograd, m) {
  m.impl("grouped_mm", TORCH_FN(titan::ops::grouped_mm_by_groups));
  m.impl("grouped_mm_weight_grad", TORCH_FN(titan::ops::grouped_mm_weight_grad_by_groups));
}
