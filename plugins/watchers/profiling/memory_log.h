// Log of device memory: each allocation and free with its layer and use, and the blocks at the
// peak. Used by memory_profile; the device reports the events (titan/memory_history.h).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <titan/dist/recorder.h>
#include <titan/memory_history.h>
#include <titan/memory_use.h>

namespace titan::profiling {

/// The position of a thread in the model.
struct MemoryPlace {
  std::string layer;                 ///< row of the table: "layers.0"; empty: outside of layers
  std::vector<std::string> modules;  ///< innermost first: "layers.0.attention", "layers.0"
  std::string pass;                  ///< "forward", "backward"; empty outside of layers
};

/// An allocation, a free, or a failed allocation.
struct MemoryEvent {
  enum class Action : uint8_t { taken, given_back, refused };
  Action action = Action::taken;
  MemoryUse use = MemoryUse::temporary;  ///< as far as known; corrected later
  int32_t place = 0;                     ///< index in MemoryHistoryCopy::places
  int32_t doing = 0;                     ///< index in `doings`
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t time_us = 0;  ///< since 1970
};

/// A copy of the whole log.
struct MemoryHistoryCopy {
  std::vector<MemoryEvent> events;  ///< oldest first
  std::vector<MemoryEvent> live;    ///< allocated blocks, as they were allocated, by address
  std::vector<MemoryPlace> places;
  std::vector<std::string> doings;  ///< activities of the rank: "backward of microbatch 0"
};

/// The memory at the peak.
struct MemoryPeakReport {
  int64_t bytes = 0;
  std::string doing, layer, pass;  ///< what was running
  /// Adds up to `bytes`. An empty layer: outside of layers.
  std::map<std::pair<std::string, MemoryUse>, int64_t> parts;
};

/// Thread-safe. The use of a block is often known only after its allocation; a past peak is then
/// corrected too, as in MetaMemory.
class MemoryLog final : public MemoryListener {
 public:
  /// Keeps the last `max_entries` events as counted in snapshots, where a free counts as two.
  explicit MemoryLog(size_t max_entries);

  void taken(uint64_t address, int64_t bytes) noexcept override;
  void given_back(uint64_t address) noexcept override;
  void refused(int64_t bytes) noexcept override;

  /// [before enter(place)] Returns its number for `enter`.
  int32_t add_place(MemoryPlace place);
  /// Sets the place of this thread and returns the previous one. A thread that never called it
  /// allocates memory outside of layers, and not for the trainer's activity.
  static int32_t enter(int32_t place);
  /// The place of the trainer outside of layers.
  static constexpr int32_t kOutside = 1;
  /// `recorder` gives the trainer's activity; null: none. Outlives the last event.
  void follow(const dist::Recorder* recorder);

  /// Sets the use of the block at `address` and the layer of `place`. Does nothing for an unknown
  /// block.
  void relabel(uint64_t address, MemoryUse use, int32_t place);
  /// A forward begins on this thread: temporary blocks that it does not free are saved for the
  /// backward.
  void begin_forward();
  void end_forward();

  /// Makes the current memory the peak.
  void reset_peak();
  MemoryPeakReport peak() const;
  bool was_refused() const;
  MemoryHistoryCopy copy() const;

 private:
  struct Block {
    MemoryEvent event;
    int64_t number = 0;  // counted from 1 in order of allocation
    size_t slot = 0;     // of its event in the ring, unless another event has overwritten it
  };

  void record(const MemoryEvent& event);
  void change(Block& block, MemoryUse use);
  void take_peak();
  int32_t doing_now();
  MemoryEvent event_now(MemoryEvent::Action action, uint64_t address, int64_t bytes);

  const size_t max_entries_;
  mutable std::mutex mutex_;
  const dist::Recorder* recorder_ = nullptr;
  std::vector<MemoryPlace> places_;
  std::vector<std::string> doings_;
  std::map<std::string, int32_t> number_of_doing_;
  std::vector<MemoryEvent> ring_;
  size_t num_events_ = 0;
  std::unordered_map<uint64_t, Block> live_;
  int64_t live_bytes_ = 0, last_number_ = 0;
  bool was_refused_ = false;
  std::vector<uint64_t> young_;  // addresses allocated by the running forward

  int64_t peak_bytes_ = 0, peak_number_ = 0;
  MemoryEvent peak_event_;         // the event that reached it
  std::vector<Block> gone_since_;  // blocks of the peak that were freed since
};

}  // namespace titan::profiling
