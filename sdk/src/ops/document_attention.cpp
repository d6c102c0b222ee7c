#include <titan/ops/document_attention.h>

#include <vector>

#include <ATen/ops/cat.h>

#include <titan/error.h>

namespace titan::ops {
namespace {

/// Lengths of the runs of equal numbers.
std::vector<int64_t> run_lengths(const int32_t* numbers, int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || numbers[i] != numbers[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

}  // namespace

at::Tensor document_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& documents, const AttentionOptions& options) {
  const int64_t rows = q.size(0), seq_len = q.size(2);
  TITAN_CHECK(documents.dim() == 2 && documents.size(0) == rows && documents.size(1) == seq_len &&
                  documents.scalar_type() == at::kInt && documents.is_cpu() && k.size(2) == seq_len,
              config, "document_attention: documents must be int32 (", rows, ", ", seq_len,
              ") in host memory, got ", documents.sizes(), " ", documents.scalar_type(), " on ",
              documents.device());
  const at::Tensor numbers = documents.contiguous();
  std::vector<std::vector<int64_t>> lengths;
  bool is_one_each = true;
  for (int64_t row = 0; row < rows; ++row) {
    lengths.push_back(run_lengths(numbers.const_data_ptr<int32_t>() + row * seq_len, seq_len));
    is_one_each = is_one_each && lengths.back().size() == 1;
  }
  if (is_one_each) return attention(q, k, v, options);

  std::vector<at::Tensor> outs;  // (1, n, H, hd), in the order of rows and documents
  for (int64_t row = 0; row < rows; ++row) {
    const auto pieces = [&](const at::Tensor& x) {
      return x.narrow(0, row, 1).split_with_sizes(lengths[static_cast<size_t>(row)], 2);
    };
    const std::vector<at::Tensor> qs = pieces(q), ks = pieces(k), vs = pieces(v);
    for (size_t i = 0; i < qs.size(); ++i)
      outs.push_back(attention(qs[i], ks[i], vs[i], options).transpose(1, 2));
  }
  return at::cat(outs, 1).view({rows, seq_len, q.size(1), v.size(3)}).transpose(1, 2);
}

}  // namespace titan::ops
