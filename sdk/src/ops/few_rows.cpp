#include "few_rows.h"

#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <titan/ops/few_rows.h>

#include "kernels/kernels.h"

namespace titan::ops {
namespace {

using at::Tensor;

thread_local bool scope_lives = false;

constexpr int64_t kBytesPerThread = 1 << 18;  // of a weight, at least: starting threads takes time

bool can_take(const Tensor& x, const Tensor& weight) {
  const at::ScalarType dtype = weight.scalar_type();
  if (x.numel() == 0 || x.numel() > x.size(-1) * FewRowsScope::kMost) return false;
  if (!x.is_cpu() || !weight.is_cpu() || !weight.is_contiguous()) return false;
  // the inner loop takes bf16 in pairs
  return dtype == at::kFloat || (dtype == at::kBFloat16 && weight.size(1) % 2 == 0);
}

}  // namespace

FewRowsScope::FewRowsScope() : before_(std::exchange(scope_lives, true)) {}
FewRowsScope::~FewRowsScope() {
  scope_lives = before_;
}

std::optional<Tensor> few_rows(const Tensor& x, const Tensor& weight) {
  if (!scope_lives || !can_take(x, weight)) return std::nullopt;
  const int64_t cols = x.size(-1), count = x.numel() / cols, num_rows = weight.size(0);
  const bool is_narrow = weight.scalar_type() == at::kBFloat16;
  Tensor rows = x.to(at::kFloat).reshape({count, cols});
  // elements of even index, then those of odd: the order in which the kernel unpacks pairs
  if (is_narrow) rows = rows.view({count, cols / 2, 2}).transpose(1, 2);
  rows = rows.contiguous();
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = num_rows;
  const Tensor out = at::empty(shape, rows.options());
  const float* x_data = rows.const_data_ptr<float>();
  float* out_data = out.mutable_data_ptr<float>();
  const void* data = weight.const_data_ptr();
  const auto row_bytes = cols * static_cast<int64_t>(weight.element_size());
  at::parallel_for(0, num_rows, std::max<int64_t>(1, kBytesPerThread / row_bytes),
                   [&](int64_t begin, int64_t end) {
                     const WeightRows part{
                         .data = static_cast<const char*>(data) + begin * row_bytes,
                         .rows = end - begin,
                         .cols = cols};
                     const auto compute = is_narrow ? kernels().few_rows_bf16 : kernels().few_rows;
                     compute(part, x_data, count, out_data + begin, num_rows);
                   });
  return out.to(x.scalar_type());
}

}  // namespace titan::ops
