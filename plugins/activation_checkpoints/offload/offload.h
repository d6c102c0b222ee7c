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
#include "transfers.h"

namespace titan::offload {

struct OffloadOptions {
  Bytes min_bytes{1 << 20};
  bool prefetch = true;
  bool pin_memory = true;
};

/// What one forward of one block keeps: each piece of memory leaves once, however many saved
/// tensors look at it. The graph keeps the copies.
class BlockMemory final : public nn::SavedTensorHooks,
                          public std::enable_shared_from_this<BlockMemory> {
 public:
  /// `before`: of the block before it in the same forward, if any.
  BlockMemory(const OffloadOptions& options, std::shared_ptr<Transfers> transfers,
              const std::vector<nn::Parameter*>& parameters, std::weak_ptr<BlockMemory> before);
  std::unique_ptr<nn::SavedTensor> pack(const at::Tensor& tensor) override;
  /// The block's forward is over.
  void end_forward() { transfers_->has_kept(kept_bytes_); }
  /// The block's backward begins.
  void start_backward();
  /// Starts copies back as far as Transfers has room: of this block, then of those before it; what
  /// was saved last first.
  void fetch_ahead();

 private:
  struct Entry {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // gone: its address may be another's now
    std::weak_ptr<HostCopy> copy;
  };

  OffloadOptions options_;
  std::shared_ptr<Transfers> transfers_;
  std::unordered_set<const c10::StorageImpl*> stays_;
  std::weak_ptr<BlockMemory> before_;
  std::unordered_map<const c10::StorageImpl*, Entry> moved_;
  std::vector<std::weak_ptr<HostCopy>> copies_;  // in the order in which they were saved
  size_t num_to_fetch_ = 0;                      // of `copies_`, from its begin
  int64_t kept_bytes_ = 0;
};

/// The blocks' kept tensors live in host memory between forward and backward. Device memory for the
/// copies under way is limited to what one block keeps (Transfers): the forward of a block waits
/// for the copies of the block before it, and its backward makes room for the copies of that one.
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
