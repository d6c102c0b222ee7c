#include "exchange.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

namespace titan::semi_sync {
namespace {

/// The sum of chunk r of every rank, on rank r. `chunks`: (ranks, numbers).
at::Tensor sum_of_own_chunk(const dist::Group& group, const at::Tensor& chunks) {
  const at::Tensor received = at::empty_like(chunks);
  group.all_to_all(received, chunks).wait();
  at::Tensor sum = received[0].clone();
  for (int64_t rank = 1; rank < received.size(0); ++rank) sum.add_(received[rank]);
  return sum;
}

void sum_bucket(const dist::Group& group, const std::vector<at::Tensor>& tensors) {
  int64_t numel = 0;
  for (const at::Tensor& tensor : tensors) numel += tensor.numel();
  const int64_t size = group.size(), chunk = (numel + size - 1) / size;
  const at::Tensor flat = at::zeros({size * chunk}, tensors.front().options());
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    offset += tensor.numel();
  }
  const at::Tensor sum = sum_of_own_chunk(group, flat.view({size, chunk}));
  group.all_gather(flat, sum).wait();
  offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

/// How a tensor is sent as rows: each rank sums `rows_per_rank` of them.
struct RowForm {
  int64_t rows = 0, columns = 0, rows_per_rank = 0;

  RowForm(const at::Tensor& tensor, int64_t size)
      : rows(tensor.dim() > 1 ? tensor.size(0) : 1),
        columns(tensor.numel() / std::max<int64_t>(1, rows)),
        rows_per_rank((rows + size - 1) / size) {}
  int64_t bytes_per_rank() const { return rows_per_rank * bytes_of_row(columns); }
};

}  // namespace

void sum_over(const dist::Group& group, const std::vector<at::Tensor>& tensors,
              int64_t bucket_bytes) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> bucket;
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    const auto own = static_cast<int64_t>(tensor.nbytes());
    if (!bucket.empty() &&
        (bytes + own > bucket_bytes || bucket.front().scalar_type() != tensor.scalar_type())) {
      sum_bucket(group, bucket);
      bucket.clear();
      bytes = 0;
    }
    bucket.push_back(tensor);
    bytes += own;
  }
  if (!bucket.empty()) sum_bucket(group, bucket);
}

void sum_over_quantized(const dist::Group& group, const std::vector<at::Tensor>& tensors,
                        RowType type) {
  if (group.size() == 1 || tensors.empty()) return;
  const at::NoGradGuard no_grad;
  const int64_t size = group.size();
  std::vector<RowForm> forms;
  std::vector<at::Tensor> parts;  // of each tensor: (ranks, bytes)
  for (const at::Tensor& tensor : tensors) {
    const RowForm& form = forms.emplace_back(tensor, size);
    at::Tensor rows =
        at::zeros({size * form.rows_per_rank, form.columns}, tensor.options().dtype(at::kFloat));
    rows.narrow(0, 0, form.rows).copy_(tensor.reshape({form.rows, form.columns}));
    parts.push_back(to_quantized_rows(rows, type).view({size, form.bytes_per_rank()}));
  }
  const at::Tensor sent = at::cat(parts, 1);
  const at::Tensor received = at::empty_like(sent);
  group.all_to_all(received, sent).wait();

  std::vector<at::Tensor> sums;
  int64_t offset = 0;
  for (const RowForm& form : forms) {
    at::Tensor sum =
        at::zeros({form.rows_per_rank, form.columns}, sent.options().dtype(at::kFloat));
    for (int64_t rank = 0; rank < size; ++rank)
      sum.add_(from_quantized_rows(received[rank]
                                       .narrow(0, offset, form.bytes_per_rank())
                                       .view({form.rows_per_rank, bytes_of_row(form.columns)}),
                                   form.columns, type));
    sums.push_back(to_quantized_rows(sum, type).view({-1}));
    offset += form.bytes_per_rank();
  }
  const at::Tensor all = at::empty_like(sent);
  group.all_gather(all.view({-1}), at::cat(sums)).wait();

  offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const RowForm& form = forms[i];
    const at::Tensor bytes = all.narrow(1, offset, form.bytes_per_rank())
                                 .reshape({size * form.rows_per_rank, bytes_of_row(form.columns)});
    tensors[i].copy_(from_quantized_rows(bytes, form.columns, type)
                         .narrow(0, 0, form.rows)
                         .view(tensors[i].sizes()));
    offset += form.bytes_per_rank();
  }
}

}  // namespace titan::semi_sync
