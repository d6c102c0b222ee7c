// Shared by all HostCopy objects of one model part: a stream for each direction, a pool of host
// memory, and the limit of device memory that waits for copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <titan/side_stream.h>

namespace titan::offload {

/// Device memory that is being copied to the host.
class Leaving {
 public:
  virtual ~Leaving() = default;
  virtual bool is_leaving() const = 0;
  /// Frees the source's memory: work queued on its stream from now on runs after the copy.
  virtual void let_go() = 0;
};

/// Host memory, and the end of the last copy that reads it; null if none does.
struct HostPiece {
  at::Tensor bytes;
  std::shared_ptr<c10::Event> read;
};

/// Limits the device memory that waits for copies to the memory that one block saves: memory not
/// yet copied out plus memory copied back and not yet used. Stream order enforces the limit; the
/// host does not wait. So the peak depends only on the order in which the host queues work, not on
/// the speed of the bus.
/// Thread: one at a time; the trainer's in the forward, autograd's in the backward.
class Transfers {
 public:
  explicit Transfers(bool pins) : pins_(pins) {}

  const SideStream& to_host(c10::Device device) { return stream(to_host_, device); }
  const SideStream& to_device(c10::Device device) { return stream(to_device_, device); }

  /// At least `bytes` of host memory. A copy into it waits for HostPiece::read.
  HostPiece take_host(int64_t bytes);
  void give_back(HostPiece piece);

  /// A block has saved `bytes`; the limit is the maximum over blocks.
  void has_kept(int64_t bytes) { limit_ = std::max(limit_, bytes); }

  /// `copy` of `block` has started; the oldest copies free their device memory until the limit
  /// holds. The first block has no limit.
  void start(const std::shared_ptr<Leaving>& copy, const void* block);
  /// The copies of all blocks but `block` free their device memory.
  void finish_others(const void* block);
  /// Whether `bytes` more may be copied back before they are needed. One copy always may.
  bool has_room(int64_t bytes) const {
    return returned_bytes_ == 0 || leaving_bytes_ + returned_bytes_ + bytes <= limit_;
  }

  /// Called by the copies: bytes of device memory not yet copied out, or copied back and not yet
  /// used.
  void add_leaving(int64_t bytes) { leaving_bytes_ += bytes; }
  void add_returned(int64_t bytes) { returned_bytes_ += bytes; }

 private:
  struct Entry {
    std::weak_ptr<Leaving> copy;
    const void* block;
  };
  static const SideStream& stream(std::optional<SideStream>& stream, c10::Device device);

  bool pins_;
  std::optional<SideStream> to_host_, to_device_;
  std::map<int64_t, std::vector<HostPiece>> free_;  // by size, a power of 2
  std::deque<Entry> leaving_;                       // the oldest first
  int64_t limit_ = 0;
  int64_t leaving_bytes_ = 0, returned_bytes_ = 0;
};

}  // namespace titan::offload
