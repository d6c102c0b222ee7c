// Moves what blocks keep for the backward to host memory and brings it back in time.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <titan/device_graphs.h>
#include <titan/nn/saved_tensors.h>
#include <titan/options.h>
#include <titan/transform.h>

#include "host_copy.h"

namespace titan::offload {

struct OffloadOptions {
  Bytes min_bytes{1 << 20};
  bool prefetch = true;
  bool pin_memory = true;
};

/// What one forward of one block keeps: each piece of memory leaves once, however many saved
/// tensors look at it. The graph keeps the copies.
class BlockMemory final : public nn::SavedTensorHooks {
 public:
  BlockMemory(const OffloadOptions& options, const std::vector<nn::Parameter*>& parameters);
  std::unique_ptr<nn::SavedTensor> pack(const at::Tensor& tensor) override;
  void start_return();

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // gone: its address may be another's now
    std::weak_ptr<HostCopy> copy;
  };

  OffloadOptions options_;
  std::unordered_set<const c10::StorageImpl*> stays_;
  std::unordered_map<const c10::StorageImpl*, Entry> moved_;
  std::vector<std::weak_ptr<HostCopy>> copies_;  // in the order in which they were saved
};

/// The blocks' kept tensors live in host memory between forward and backward; while the backward of
/// one block runs, the memory of the block before it is on its way back.
class Offload final : public ActivationCheckpoint, public HostWork {
 public:
  Offload(const OffloadOptions& options, TransformContext) : options_(options) {}
  Phase phase() const override { return Phase::recompute; }
  void apply(ModelPart& part, const TransformContext& context) override;
  std::string host_work() const override { return "activations go to the host"; }

 private:
  OffloadOptions options_;
};

}  // namespace titan::offload
