// Sends a text and tensors to one rank of a group while receiving those of another. Used for copies
// of checkpoints.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <titan/dist/group.h>
#include <titan/export.h>

namespace titan::dist {

struct TensorMessage {
  std::string text;
  std::vector<at::Tensor> tensors;  ///< received: contiguous, on the CPU, in one memory
};

/// Collective: sends `own` to the rank `shift` above this one, cyclically, and returns the message
/// of the rank `shift` below, bit for bit. The memory for both messages is additional. `device`:
/// where `group` communicates.
TITAN_API TensorMessage exchange_shifted(const TensorMessage& own, int shift, const Group& group,
                                         c10::Device device);

}  // namespace titan::dist
