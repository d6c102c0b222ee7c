// embedding on the CPU: rows picked by ATen; the gradient row by row, each row's tokens in their
// order.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <titan/error.h>

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

/// Token indices sorted by table row, order kept within a row: those of row r stand at start[r] ...
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
  const Tensor dweight = at::empty({num_rows, dout.size(-1)}, dout.options());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dout.scalar_type(),
                                  "titan::embedding_backward",
                                  [&] { sum_rows<scalar_t>(in, sorted, dweight); });
  return dweight;
}

}  // namespace titan::ops::cpu
