// Tensors of the recording device are in host memory, so the CPU's kernels compute on them in
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

/// The bytes that a tensor spans, including gaps between its elements.
Access access_of(const at::Tensor& tensor, bool is_write);

/// Another tensor with the same addresses, sizes and strides, without autograd history. Does not
/// own the memory, like tensors in a recorded GPU graph.
at::Tensor alias_of(const at::Tensor& tensor);

/// Pairs of device and host tensors that share memory during one operation.
class SharedMemory {
 public:
  /// A CPU tensor of the same elements.
  at::Tensor on_host(const at::Tensor& tensor);
  /// The reverse. Memory that a host kernel allocated becomes device memory of the current stream.
  at::Tensor on_device(const at::Tensor& tensor);
  /// Moves memory that a kernel allocated for an empty `host` to `tensor`.
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
