// Activation checkpointing mode `offload`: tensors that blocks save for the backward are moved to
// host memory and fetched back before their use.
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
#include "transfers.h"

namespace titan::offload {

struct OffloadOptions {
  Bytes min_bytes{1 << 20};
  bool prefetch = true;
  bool pin_memory = true;
};

/// Memory that one forward of one block saves. Each storage is copied once, however many saved
/// tensors view it. The graph owns the copies.
class BlockMemory final : public nn::SavedTensorHooks,
                          public std::enable_shared_from_this<BlockMemory> {
 public:
  /// `before`: that of the previous block in the same forward, if any.
  BlockMemory(const OffloadOptions& options, std::shared_ptr<Transfers> transfers,
              const std::vector<nn::Parameter*>& parameters, std::weak_ptr<BlockMemory> before);
  std::unique_ptr<nn::SavedTensor> pack(const at::Tensor& tensor) override;
  /// Called after the block's forward.
  void end_forward() { transfers_->has_kept(kept_bytes_); }
  /// Called when the block's backward begins.
  void start_backward();
  /// Starts copies back to the device as far as Transfers has room: of this block, then of the
  /// previous ones, the last saved first.
  void fetch_ahead();

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // expired: address may be reused
    std::weak_ptr<HostCopy> copy;
  };

  OffloadOptions options_;
  std::shared_ptr<Transfers> transfers_;
  std::unordered_set<const c10::StorageImpl*> stays_;
  std::weak_ptr<BlockMemory> before_;
  std::unordered_map<const c10::StorageImpl*, Entry> moved_;
  std::vector<std::weak_ptr<HostCopy>> copies_;  // in the order of saving
  size_t num_to_fetch_ = 0;                      // still to fetch: the first ones of `copies_`
  int64_t kept_bytes_ = 0;
};

/// Saved tensors of blocks are in host memory between forward and backward. Device memory for
/// copies in flight is limited to the memory that one block saves (Transfers): the forward of a
/// block waits for the copies of the previous block, and its backward makes room for them.
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
