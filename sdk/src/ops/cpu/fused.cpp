// Fused operations on the CPU: fp32 and bf16 block by block, through memory that stays in the
// cache; other types as they are composed.
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

/// The block of three bf16 tensors at `first`, in fp32 and back.
void swiglu_backward_bf16(uint16_t* dout, uint16_t* gate, uint16_t* up, int64_t n) {
  float wide[3][kFusedBlock];
  uint16_t* const narrow[3] = {dout, gate, up};
  for (int i = 0; i < 3; ++i) kernels().widen_bf16(narrow[i], wide[i], n);
  kernels().swiglu_backward_in_place(wide[0], wide[1], wide[2], n);
  for (int i = 0; i < 3; ++i) kernels().narrow_bf16(wide[i], narrow[i], n);
}

struct Angles {
  const float* cos;
  const float* sin;
  const int64_t* positions;  // null: 0, 1, ...
  float sign;
};

void rotate_into(const Tensor& in, const Angles& angles, const Tensor& out) {
  const int64_t seq_len = in.size(1), heads = in.size(2), width = in.size(3), half = width / 2;
  const bool is_narrow = in.scalar_type() == at::kBFloat16;
  at::parallel_for(0, in.size(0) * seq_len, grain(heads * width), [&](int64_t begin, int64_t end) {
    std::vector<float> wide(is_narrow ? heads * width : 0);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / seq_len, token = i % seq_len;
      const int64_t from = row * in.stride(0) + token * in.stride(1);
      const int64_t to = row * out.stride(0) + token * out.stride(1);
      const int64_t position = angles.positions ? angles.positions[i] : token;
      const float* const cos = angles.cos + position * half;
      const float* const sin = angles.sin + position * half;
      if (!is_narrow) {
        kernels().rope(in.const_data_ptr<float>() + from, in.stride(2), cos, sin, angles.sign,
                       out.mutable_data_ptr<float>() + to, heads, half);
        continue;
      }
      const auto* const bits = static_cast<const uint16_t*>(in.const_data_ptr()) + from;
      for (int64_t head = 0; head < heads; ++head)
        kernels().widen_bf16(bits + head * in.stride(2), wide.data() + head * width, width);
      kernels().rope(wide.data(), width, cos, sin, angles.sign, wide.data(), heads, half);
      kernels().narrow_bf16(wide.data(), bits_of(out) + to, heads * width);
    }
  });
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

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out) {
  const at::ScalarType type = q.scalar_type();
  const bool has_own = type == at::kFloat || type == at::kBFloat16;
  if (!has_own || q.stride(3) != 1 || k.stride(3) != 1)
    return composed::rope_into(q, k, cos, sin, positions, inverse, q_out, k_out);
  const Tensor c = cos.contiguous(), s = sin.contiguous();
  Tensor rows;
  if (positions.has_value()) {
    rows = positions->contiguous();
    const int64_t* const p = rows.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < rows.numel(); ++i)
      TITAN_CHECK(p[i] >= 0 && p[i] < c.size(0), data, "rope: position ", p[i],
                  " is outside of the tables of ", c.size(0), " positions (token ", i, ")");
  }
  const Angles angles{c.const_data_ptr<float>(), s.const_data_ptr<float>(),
                      rows.defined() ? rows.const_data_ptr<int64_t>() : nullptr,
                      inverse ? -1.0f : 1.0f};
  rotate_into(q, angles, q_out);
  rotate_into(k, angles, k_out);
}

}  // namespace titan::ops::cpu
