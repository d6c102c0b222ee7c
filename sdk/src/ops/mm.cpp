#include <titan/ops/mm.h>

#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

namespace titan::ops {
namespace {

using at::Tensor;

struct HostProducts {
  bool bf16_is_fast = false, fp16_is_fast = false;
};

/// As ATen asks before it calls oneDNN.
const HostProducts& host_products() {
#if defined(__x86_64__)
  static const HostProducts found = {.bf16_is_fast = __builtin_cpu_supports("avx512vl") &&
                                                     __builtin_cpu_supports("avx512bw") &&
                                                     __builtin_cpu_supports("avx512dq"),
                                     .fp16_is_fast = __builtin_cpu_supports("avx512fp16") != 0};
#else
  static const HostProducts found = {.bf16_is_fast = true, .fp16_is_fast = true};
#endif
  return found;
}

bool is_widened(const Tensor& a) {
  if (a.is_cuda() || a.is_meta()) return false;
  return (a.scalar_type() == at::kBFloat16 && !host_products().bf16_is_fast) ||
         (a.scalar_type() == at::kHalf && !host_products().fp16_is_fast);
}

}  // namespace

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
