#include <titan/ops/mm.h>

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include "slow_products.h"

namespace titan::ops {
namespace {

using at::Tensor;

bool is_widened(const Tensor& a) {
  if (a.is_cuda() || a.is_meta()) return false;
  return are_products_slow(a.scalar_type());
}

}  // namespace

bool are_products_slow([[maybe_unused]] at::ScalarType type) {
#if defined(__x86_64__)
  static const bool has_bf16 = __builtin_cpu_supports("avx512vl") &&
                               __builtin_cpu_supports("avx512bw") &&
                               __builtin_cpu_supports("avx512dq");
  static const bool has_fp16 = __builtin_cpu_supports("avx512fp16");
  return (type == at::kBFloat16 && !has_bf16) || (type == at::kHalf && !has_fp16);
#else
  return false;
#endif
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (!is_widened(a)) return at::mm(a, b);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
}

void mm_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  Tensor place = out;
  if (is_widened(a))
    place.copy_(at::mm(a.to(at::kFloat), b.to(at::kFloat)));
  else
    at::mm_out(place, a, b);
}

void add_mm_to(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (is_widened(a))
    out.copy_(at::addmm(out.to(at::kFloat), a.to(at::kFloat), b.to(at::kFloat)));
  else
    out.addmm_(a, b);
}

}  // namespace titan::ops
