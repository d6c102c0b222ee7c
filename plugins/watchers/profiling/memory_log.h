// What memory of the device was taken and given back, by whom and what for, and what was there at
// the highest moment. Used by memory_profile; the device tells it (titan/memory_history.h).
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

/// Where in the model a thread is.
struct MemoryPlace {
  std::string layer;                 ///< of the table: "layers.0"; empty: outside of all
  std::vector<std::string> modules;  ///< innermost first: "layers.0.attention", "layers.0"
  std::string pass;                  ///< "forward", "backward"; empty outside
};

/// Something that happened to a block.
struct MemoryEvent {
  enum class Action : uint8_t { taken, given_back, refused };
  Action action = Action::taken;
  MemoryUse use = MemoryUse::temporary;  ///< as far as it is known by now
  int32_t place = 0;                     ///< index of MemoryHistoryCopy::places
  int32_t doing = 0;                     ///< likewise of `doings`
  uint64_t address = 0;
  int64_t bytes = 0;
  int64_t time_us = 0;  ///< since 1970
};

/// All that the log knows, at one moment.
struct MemoryHistoryCopy {
  std::vector<MemoryEvent> events;  ///< oldest first
  std::vector<MemoryEvent> live;    ///< blocks that are there, as they were taken, by address
  std::vector<MemoryPlace> places;
  std::vector<std::string> doings;  ///< what the rank was working on: "backward of microbatch 0"
};

/// The highest moment.
struct MemoryPeakReport {
  int64_t bytes = 0;
  std::string doing, layer, pass;  ///< what was running
  /// Adds up to `bytes`. Layers that are empty: outside of all.
  std::map<std::pair<std::string, MemoryUse>, int64_t> parts;
};

/// Thread-safe. What memory is for often shows later than it is taken: a moment that has passed is
/// corrected too, as in MetaMemory.
class MemoryLog final : public MemoryListener {
 public:
  /// Keeps the last `max_entries` events as snapshots count them: a block that goes is two.
  explicit MemoryLog(size_t max_entries);

  void taken(uint64_t address, int64_t bytes) noexcept override;
  void given_back(uint64_t address) noexcept override;
  void refused(int64_t bytes) noexcept override;

  /// [before the place is entered] Its number for `enter`.
  int32_t add_place(MemoryPlace place);
  /// Where this thread is from now on; returns where it was. A thread that has entered nothing
  /// takes memory outside of all layers, and not for what the trainer is working on.
  static int32_t enter(int32_t place);
  /// The place of the trainer outside of layers.
  static constexpr int32_t kOutside = 1;
  /// What the trainer is working on comes from there; null: from nowhere. Outlives the last event.
  void follow(const dist::Recorder* recorder);

  /// The block at `address` is for `use`, of the layer of `place`; nothing happens when it is not
  /// known.
  void relabel(uint64_t address, MemoryUse use, int32_t place);
  /// A forward begins on this thread: what it takes as temporary and leaves is for the backward.
  void begin_forward();
  void end_forward();

  /// The highest moment is now.
  void reset_peak();
  MemoryPeakReport peak() const;
  bool was_refused() const;
  MemoryHistoryCopy copy() const;

 private:
  struct Block {
    MemoryEvent event;
    int64_t number = 0;  // counted from 1 in the order of taking
    size_t slot = 0;     // of its event in the ring, unless another one has it by now
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
  std::vector<uint64_t> young_;  // addresses of the forward that is running

  int64_t peak_bytes_ = 0, peak_number_ = 0;
  MemoryEvent peak_event_;         // that made it
  std::vector<Block> gone_since_;  // blocks of the highest moment that are not there any more
};

}  // namespace titan::profiling
