#include <titan/batch.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

namespace titan {

at::Tensor TokenPlaces::numbers(int64_t rows, int64_t length, c10::Device device) const {
  const auto longs = at::TensorOptions().dtype(at::kLong).device(device);
  const int64_t first = part.number * length;
  const at::Tensor here = in_row.defined() ? in_row.narrow(0, first, length).to(device)
                                           : at::arange(first, first + length, longs);
  const at::Tensor row = at::arange(first_row, first_row + rows, longs).unsqueeze(1);
  return row * (row_length > 0 ? row_length : part.count * length) + here;
}

int64_t Batch::num_tokens() const {
  return is_padding.defined() ? is_padding.logical_not().sum().item<int64_t>() : tokens.numel();
}

at::Tensor Batch::padding_of(int64_t length) const {
  return is_padding.defined() ? is_padding.narrow(1, places.part.number * length, length)
                              : at::Tensor();
}

Batch Batch::rows(int64_t first, int64_t count) const {
  Batch part = *this;
  for (at::Tensor* tensor : {&part.tokens, &part.labels, &part.positions, &part.documents,
                             &part.is_padding, &part.reference})
    if (tensor->defined()) *tensor = tensor->narrow(0, first, count);
  part.places.first_row += first;
  return part;
}

namespace {

/// Asynchronous copies need pinned memory; from other memory the host would wait for all queued
/// work of the device. So memory that is not pinned is copied to pinned memory first.
at::Tensor moved_to(c10::Device device, const at::Tensor& tensor) {
  const bool runs_beside = !device.is_cpu() && !device.is_meta();
  const bool is_staged = runs_beside && tensor.is_cpu() && !tensor.is_pinned();
  return (is_staged ? tensor.pin_memory() : tensor).to(device, /*non_blocking=*/true);
}

}  // namespace

Batch Batch::to(c10::Device device) const {
  Batch moved = *this;
  for (at::Tensor* tensor : {&moved.tokens, &moved.labels, &moved.positions, &moved.is_padding,
                             &moved.reference, &moved.logits_of, &moved.places.in_row})
    if (tensor->defined()) *tensor = moved_to(device, *tensor);
  return moved;
}

}  // namespace titan
