// rope on the CPU: the heads of one token in sequence, tokens over threads.
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <titan/error.h>

#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

void check_positions(const Tensor& positions, int64_t limit) {
  const int64_t* p = positions.const_data_ptr<int64_t>();
  const int64_t seq_len = std::max<int64_t>(1, positions.size(1));
  for (int64_t i = 0; i < positions.numel(); ++i) {
    TITAN_CHECK(p[i] >= 0 && p[i] < limit, data, "rope: position ", p[i],
                " is outside of the tables of ", limit, " positions (row ", i / seq_len, ", token ",
                i % seq_len, ")");
  }
}

Tensor rotate_in_double(const Tensor& x, const Tensor& cos, const Tensor& sin, double sign) {
  const int64_t half = x.size(3) / 2;
  const Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
  const Tensor s = sin * sign;
  return at::cat({a * cos - b * s, b * cos + a * s}, 3);
}

bool has_own(const Tensor& x) {
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
}

/// The tables of a rotation, and the positions that index them.
class Angles {
 public:
  /// cos, sin (positions, head_dim / 2) in fp32; `positions` (B, S), 0 ... S-1 without.
  Angles(const Tensor& cos, const Tensor& sin, const std::optional<Tensor>& positions, bool inverse)
      : cos_(cos.contiguous()), sin_(sin.contiguous()), sign_(inverse ? -1.0f : 1.0f) {
    if (!positions.has_value()) return;
    positions_ = positions->contiguous();
    check_positions(positions_, cos.size(0));
  }

  /// out = rotated in (B, S, heads, head_dim). fp32 or bf16, the same for both; contiguous elements
  /// within a head, and out's heads contiguous too.
  void rotate(const Tensor& in, const Tensor& out) const;

 private:
  Tensor cos_, sin_, positions_;  // positions_ undefined: 0 ... S-1
  float sign_;
};

void Angles::rotate(const Tensor& in, const Tensor& out) const {
  const int64_t seq_len = in.size(1), heads = in.size(2), width = in.size(3), half = width / 2;
  const bool is_narrow = in.scalar_type() == at::kBFloat16;
  const int64_t* const positions =
      positions_.defined() ? positions_.const_data_ptr<int64_t>() : nullptr;
  const float* const all_cos = cos_.const_data_ptr<float>();
  const float* const all_sin = sin_.const_data_ptr<float>();
  at::parallel_for(0, in.size(0) * seq_len, grain(heads * width), [&](int64_t begin, int64_t end) {
    std::vector<float> wide(is_narrow ? heads * width : 0);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / seq_len, token = i % seq_len;
      const int64_t from = row * in.stride(0) + token * in.stride(1);
      const int64_t to = row * out.stride(0) + token * out.stride(1);
      const int64_t position = positions ? positions[i] : token;
      const float* const cos = all_cos + position * half;
      const float* const sin = all_sin + position * half;
      if (!is_narrow) {
        kernels().rope(in.const_data_ptr<float>() + from, in.stride(2), cos, sin, sign_,
                       out.mutable_data_ptr<float>() + to, heads, half);
        continue;
      }
      const auto* const bits = static_cast<const uint16_t*>(in.const_data_ptr()) + from;
      for (int64_t head = 0; head < heads; ++head)
        kernels().widen_bf16(bits + head * in.stride(2), wide.data() + head * width, width);
      kernels().rope(wide.data(), width, cos, sin, sign_, wide.data(), heads, half);
      kernels().narrow_bf16(wide.data(), static_cast<uint16_t*>(out.mutable_data_ptr()) + to,
                            heads * width);
    }
  });
}

Tensor rotated(const Tensor& x, const Angles& angles) {
  Tensor in = has_own(x) ? x : x.to(at::kFloat);
  if (in.stride(3) != 1) in = in.contiguous();
  const Tensor out = at::empty(in.sizes(), in.options());
  angles.rotate(in, out);
  return out.to(x.scalar_type());
}

}  // namespace

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse) {
  if (q.scalar_type() == at::kDouble) {
    Tensor rows;
    if (positions.has_value()) {
      rows = positions->contiguous();
      check_positions(rows, cos.size(0));
    }
    const Tensor index = rows.defined() ? rows.flatten() : at::arange(q.size(1), at::kLong);
    const int64_t batch = rows.defined() ? rows.size(0) : 1;
    const auto pick = [&](const Tensor& table) {
      return table.index_select(0, index).view({batch, q.size(1), 1, table.size(1)});
    };
    const Tensor c = pick(cos), s = pick(sin);
    const double sign = inverse ? -1.0 : 1.0;
    return {rotate_in_double(q, c, s, sign), rotate_in_double(k, c, s, sign)};
  }
  const Angles angles(cos, sin, positions, inverse);
  return {rotated(q, angles), rotated(k, angles)};
}

void rope_into(const Tensor& q, const Tensor& k, const Tensor& cos, const Tensor& sin,
               const std::optional<Tensor>& positions, bool inverse, const Tensor& q_out,
               const Tensor& k_out) {
  if (!has_own(q) || q.stride(3) != 1 || k.stride(3) != 1)
    return composed::rope_into(q, k, cos, sin, positions, inverse, q_out, k_out);
  const Angles angles(cos, sin, positions, inverse);
  angles.rotate(q, q_out);
  angles.rotate(k, k_out);
}

}  // namespace titan::ops::cpu
