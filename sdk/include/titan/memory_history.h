// Optional interface of devices that report every allocation and free of device memory. Used by
// [profiling] enable_memory_snapshot.
#pragma once

#include <cstdint>
#include <string>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(memory_history);

namespace titan {

/// Receives the events of a device's allocator. Called on any thread, inside the allocator, whose
/// lock may be held: an implementation allocates no device memory and throws nothing.
class TITAN_API MemoryListener {
 public:
  virtual ~MemoryListener();
  /// `address`: the data pointer of the storage. `bytes`: the requested size, or the rounded size
  /// if the device no longer knows the request.
  virtual void taken(uint64_t address, int64_t bytes) noexcept = 0;
  virtual void given_back(uint64_t address) noexcept = 0;
  /// The device cannot provide `bytes`; the out-of-memory error follows.
  virtual void refused(int64_t bytes) noexcept = 0;
};

/// Optional: a Device that derives from this can record the history of its memory. It costs nothing
/// until start_history is called.
class TITAN_API MemoryHistory {
 public:
  virtual ~MemoryHistory();
  /// [once, before the model has memory] From now on the device reports all blocks to `listener`,
  /// which outlives every tensor. A device that writes its own snapshots keeps their last
  /// `max_entries` events.
  virtual void start_history(MemoryListener& listener, int64_t max_entries) = 0;
  /// [any thread, often] The purpose of this thread's allocations from now on, as one line of text.
  virtual void set_memory_label(const std::string& label);
  /// [trainer thread] A pickle in the format of torch.cuda.memory._snapshot. Empty: the device
  /// writes none, and the caller makes one from the events that `listener` received.
  virtual std::string memory_snapshot();
};

}  // namespace titan
