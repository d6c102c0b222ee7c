// Tensors of the recording device lie in host memory, so the CPU's kernels compute on them in
// place. Used by backend.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "stream_order.h"

namespace titan::recording {

/// The bytes that a tensor spans, gaps between its elements included.
Access access_of(const at::Tensor& tensor, bool is_write);

/// Another tensor of the same addresses, sizes and strides, without a history. Does not hold the
/// memory, as no recorded graph of a GPU does.
at::Tensor alias_of(const at::Tensor& tensor);

/// Tensors of the device and of the host that share memory, for the time of one operation.
class SharedMemory {
 public:
  /// A CPU tensor of the same elements.
  at::Tensor on_host(const at::Tensor& tensor);
  /// The other way; memory that the host's kernel made becomes the device's, of the current stream.
  at::Tensor on_device(const at::Tensor& tensor);
  /// What a kernel wrote to a `host` that had no memory becomes `tensor`'s.
  void grow(const at::Tensor& tensor, const at::Tensor& host);
  bool shares(const at::Tensor& host_tensor) const;

 private:
  std::map<c10::StorageImpl*, c10::Storage> hosts_;    // by the device's storage
  std::map<c10::StorageImpl*, c10::Storage> devices_;  // by the host's
};

/// Any operation: recorded as one launch on the current stream, computed at once by the CPU's
/// kernel.
void compute_on_host(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);

}  // namespace titan::recording
