// Fused operations on the CPU: fp32 and bf16 block by block, with intermediate results in the
// cache; other dtypes by the composed form.
#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <titan/error.h>

#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

constexpr int64_t kFusedBlock = 2048;  // elements: three blocks in fp32 stay in a first-level cache

uint16_t* bits_of(const Tensor& x) {
  return static_cast<uint16_t*>(x.mutable_data_ptr());
}

/// Converts the block of three bf16 tensors at `first` to fp32 and back.
void swiglu_backward_bf16(uint16_t* dout, uint16_t* gate, uint16_t* up, int64_t n) {
  float wide[3][kFusedBlock];
  uint16_t* const narrow[3] = {dout, gate, up};
  for (int i = 0; i < 3; ++i) kernels().widen_bf16(narrow[i], wide[i], n);
  kernels().swiglu_backward_in_place(wide[0], wide[1], wide[2], n);
  for (int i = 0; i < 3; ++i) kernels().narrow_bf16(wide[i], narrow[i], n);
}

}  // namespace

void swiglu_backward_in_place(const Tensor& dout, const Tensor& gate, const Tensor& up) {
  const bool is_narrow = gate.scalar_type() == at::kBFloat16;
  if (!is_narrow && gate.scalar_type() != at::kFloat)
    return composed::swiglu_backward_in_place(dout, gate, up);
  const int64_t total = gate.numel();
  at::parallel_for(0, (total + kFusedBlock - 1) / kFusedBlock, 8, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * kFusedBlock; first < std::min(end * kFusedBlock, total);
         first += kFusedBlock) {
      const int64_t n = std::min(kFusedBlock, total - first);
      if (is_narrow)
        swiglu_backward_bf16(bits_of(dout) + first, bits_of(gate) + first, bits_of(up) + first, n);
      else
        kernels().swiglu_backward_in_place(dout.mutable_data_ptr<float>() + first,
                                           gate.mutable_data_ptr<float>() + first,
                                           up.mutable_data_ptr<float>() + first, n);
    }
  });
}

}  // namespace titan::ops::cpu
