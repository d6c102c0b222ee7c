// rope on the CPU: one token's heads after the other, over threads.
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

struct Tables {
  const float* cos;
  const float* sin;
  const int64_t* positions;  // null: 0, 1, ...
  float sign;
};

Tensor rotate(const Tensor& x, const Tables& tables) {
  Tensor in = x.to(at::kFloat);
  if (in.stride(3) != 1) in = in.contiguous();
  const Tensor out = at::empty(in.sizes(), in.options());
  const int64_t seq_len = in.size(1), heads = in.size(2), width = in.size(3), half = width / 2;
  const float* from = in.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const int64_t row_stride = in.stride(0), token_stride = in.stride(1), head_stride = in.stride(2);
  at::parallel_for(0, in.size(0) * seq_len, grain(heads * width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / seq_len, token = i % seq_len;
      const int64_t position = tables.positions ? tables.positions[i] : token;
      kernels().rope(from + row * row_stride + token * token_stride, head_stride,
                     tables.cos + position * half, tables.sin + position * half, tables.sign,
                     to + i * heads * width, heads, half);
    }
  });
  return out.to(x.scalar_type());
}

}  // namespace

std::tuple<Tensor, Tensor> rope_rotate(const Tensor& q, const Tensor& k, const Tensor& cos,
                                       const Tensor& sin, const std::optional<Tensor>& positions,
                                       bool inverse) {
  Tensor rows;
  if (positions.has_value()) {
    rows = positions->contiguous();
    check_positions(rows, cos.size(0));
  }
  const float sign = inverse ? -1.0f : 1.0f;
  if (q.scalar_type() == at::kDouble) {
    const Tensor index = rows.defined() ? rows.flatten() : at::arange(q.size(1), at::kLong);
    const int64_t batch = rows.defined() ? rows.size(0) : 1;
    const auto pick = [&](const Tensor& table) {
      return table.index_select(0, index).view({batch, q.size(1), 1, table.size(1)});
    };
    const Tensor c = pick(cos), s = pick(sin);
    return {rotate_in_double(q, c, s, sign), rotate_in_double(k, c, s, sign)};
  }
  const Tensor c = cos.contiguous(), s = sin.contiguous();
  const Tables tables{c.const_data_ptr<float>(), s.const_data_ptr<float>(),
                      rows.defined() ? rows.const_data_ptr<int64_t>() : nullptr, sign};
  return {rotate(q, tables), rotate(k, tables)};
}

}  // namespace titan::ops::cpu
