// Optional interface of devices that tell of each block of memory when it is taken and given back.
// Used by [profiling] enable_memory_snapshot.
#pragma once

#include <cstdint>
#include <string>

#include <titan/export.h>

TITAN_OPTIONAL_HEADER(memory_history);

namespace titan {

/// Is told of blocks. On any thread, inside of the device's allocator, whose lock may be held:
/// takes no memory of the device and throws nothing.
class TITAN_API MemoryListener {
 public:
  virtual ~MemoryListener();
  /// `address`: what the storage of a tensor has as its data. `bytes`: as they were asked for, or
  /// rounded up where the device does not know that any more.
  virtual void taken(uint64_t address, int64_t bytes) noexcept = 0;
  virtual void given_back(uint64_t address) noexcept = 0;
  /// `bytes` were asked for and are not there; the error follows.
  virtual void refused(int64_t bytes) noexcept = 0;
};

/// Optional: a Device that derives from this can be asked for the history of its memory. Nothing is
/// called, and nothing may cost anything, unless somebody asks.
class TITAN_API MemoryHistory {
 public:
  virtual ~MemoryHistory();
  /// [once, before the model has memory] From now on `listener`, which outlives every tensor, is
  /// told of all blocks. A device that writes snapshots of its own keeps their last `max_entries`
  /// events.
  virtual void start_history(MemoryListener& listener, int64_t max_entries) = 0;
  /// [any thread, often] What this thread takes from now on is for, as one line of words.
  virtual void set_memory_label(const std::string& label);
  /// [trainer thread] A pickle in the format of torch.cuda.memory._snapshot. Empty: the device
  /// writes none, and one is made of what `listener` was told.
  virtual std::string memory_snapshot();
};

}  // namespace titan
