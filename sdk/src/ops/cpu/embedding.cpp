// embedding on the CPU: ATen gathers the rows; the gradient is summed row by row, each row's tokens
// in order.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <titan/error.h>

#include "../kernels/kernels.h"
#include "../signatures.h"
#include "rows.h"

namespace titan::ops::cpu {
namespace {

void check_tokens(const Tensor& tokens, int64_t num_rows) {
  const int64_t* t = tokens.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    TITAN_CHECK(t[i] >= 0 && t[i] < num_rows, data, "embedding: token ", t[i], " at index ", i,
                " is outside of the table of ", num_rows, " rows");
  }
}

/// Token indices sorted by table row, in order within a row: those of row r are at start[r] ...
/// start[r + 1] - 1.
struct TokensByRow {
  std::vector<int64_t> start, index;
};

TokensByRow sort_by_row(const Tensor& tokens, int64_t num_rows) {
  const int64_t* t = tokens.const_data_ptr<int64_t>();
  TokensByRow sorted{std::vector<int64_t>(num_rows + 1), std::vector<int64_t>(tokens.numel())};
  for (int64_t i = 0; i < tokens.numel(); ++i) ++sorted.start[t[i] + 1];
  for (int64_t row = 0; row < num_rows; ++row) sorted.start[row + 1] += sorted.start[row];
  std::vector<int64_t> next(sorted.start.begin(), sorted.start.end() - 1);
  for (int64_t i = 0; i < tokens.numel(); ++i) sorted.index[next[t[i]]++] = i;
  return sorted;
}

/// For each row calls begin(row), then sum(row, token index) for each of its tokens in order, then
/// end(row). Several threads, each with a copy of `summing`.
template <class Summing>
void sum_each_row(const TokensByRow& sorted, int64_t num_rows, int64_t dim,
                  const Summing& summing) {
  at::parallel_for(0, num_rows, grain(dim), [&](int64_t begin, int64_t end) {
    Summing own = summing;
    for (int64_t row = begin; row < end; ++row) {
      own.begin(row);
      for (int64_t i = sorted.start[row]; i < sorted.start[row + 1]; ++i) own.add(sorted.index[i]);
      own.end(row);
    }
  });
}

/// Sums into the gradient's own rows.
struct FloatRows {
  const float* from;
  float* to;
  int64_t dim;
  float* row = nullptr;

  void begin(int64_t index) {
    row = to + index * dim;
    std::fill_n(row, dim, 0.0f);
  }
  void add(int64_t token) { kernels().add(row, from + token * dim, dim); }
  void end(int64_t) {}
};

/// Sums in fp32 and rounds once.
struct Bf16Rows {
  const uint16_t* from;
  uint16_t* to;
  int64_t dim;
  std::vector<float> sum = std::vector<float>(static_cast<size_t>(dim)), share = sum;

  void begin(int64_t) { std::fill(sum.begin(), sum.end(), 0.0f); }
  void add(int64_t token) {
    kernels().widen_bf16(from + token * dim, share.data(), dim);
    kernels().add(sum.data(), share.data(), dim);
  }
  void end(int64_t index) { kernels().narrow_bf16(sum.data(), to + index * dim, dim); }
};

template <class Real>
void sum_rows(const Tensor& dout, const TokensByRow& sorted, const Tensor& dweight) {
  using Sum = at::acc_type<Real, /*is_cuda=*/true>;  // fp32 for fp32 and narrower
  const int64_t dim = dweight.size(1);
  const Real* from = dout.const_data_ptr<Real>();
  Real* to = dweight.mutable_data_ptr<Real>();
  at::parallel_for(0, dweight.size(0), grain(dim), [&](int64_t begin, int64_t end) {
    std::vector<Sum> sum(dim);
    for (int64_t row = begin; row < end; ++row) {
      std::fill(sum.begin(), sum.end(), Sum{0});
      for (int64_t i = sorted.start[row]; i < sorted.start[row + 1]; ++i) {
        const Real* share = from + sorted.index[i] * dim;
        for (int64_t j = 0; j < dim; ++j) sum[j] += static_cast<Sum>(share[j]);
      }
      std::copy(sum.begin(), sum.end(), to + row * dim);
    }
  });
}

}  // namespace

Tensor embedding_forward(const Tensor& weight, const Tensor& tokens) {
  const Tensor flat = tokens.contiguous().flatten();
  check_tokens(flat, weight.size(0));
  std::vector<int64_t> shape = tokens.sizes().vec();
  shape.push_back(weight.size(1));
  return at::index_select(weight, 0, flat).view(shape);
}

Tensor embedding_backward(const Tensor& dout, const Tensor& tokens, int64_t num_rows) {
  const Tensor in = dout.contiguous();
  const TokensByRow sorted = sort_by_row(tokens.contiguous(), num_rows);
  const int64_t dim = dout.size(-1);
  const Tensor dweight = at::empty({num_rows, dim}, dout.options());
  if (dout.scalar_type() == at::kFloat) {
    sum_each_row(sorted, num_rows, dim,
                 FloatRows{in.const_data_ptr<float>(), dweight.mutable_data_ptr<float>(), dim});
    return dweight;
  }
  if (dout.scalar_type() == at::kBFloat16) {
    sum_each_row(sorted, num_rows, dim,
                 Bf16Rows{static_cast<const uint16_t*>(in.const_data_ptr()),
                          static_cast<uint16_t*>(dweight.mutable_data_ptr()), dim});
    return dweight;
  }
  AT_DISPATCH_FLOATING_TYPES_AND(at::kHalf, dout.scalar_type(), "titan::embedding_backward",
                                 [&] { sum_rows<scalar_t>(in, sorted, dweight); });
  return dweight;
}

}  // namespace titan::ops::cpu
