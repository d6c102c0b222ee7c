// What tensors on the meta device would take if they had memory: counted by what they are for, as
// they come and go, and what was there at the highest moment. Used where ranks are simulated.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include <titan/memory_use.h>

namespace titan::core {

/// Bytes by use.
class UseBytes {
 public:
  static constexpr size_t kNumUses = 6;

  int64_t& operator[](MemoryUse use) { return bytes_[static_cast<size_t>(use)]; }
  int64_t operator[](MemoryUse use) const { return bytes_[static_cast<size_t>(use)]; }
  int64_t total() const;

 private:
  std::array<int64_t, kNumUses> bytes_{};
};

/// The highest moment.
struct MemoryPeak {
  UseBytes bytes;
  std::string place;  ///< what was running: "backward of layers.31"
};

/// Counts for the whole process, on any thread. Blocks count what was asked for, without the
/// rounding of an allocator.
///
/// What memory is for is known at once where a MemoryUseScope says so; of the rest, temporary until
/// told otherwise, it often shows later. A moment that has passed is then corrected too: its sums
/// always add up to its total.
class MetaMemory {
 public:
  /// From now on tensors that are made on the meta device are counted.
  static void start_counting();
  /// What exists.
  static UseBytes live();
  /// The most at once since the last reset.
  static MemoryPeak peak();
  /// The highest moment is now.
  static void reset_peak();
  /// What runs from now on.
  static void set_place(std::string place);
  /// The memory behind `tensor` is for `use`; nothing happens when it has none of ours.
  static void relabel(const at::Tensor& tensor, MemoryUse use);

  /// The forward of one layer: what is temporary and still there at its end, the backward needs.
  class ForwardScope {
   public:
    ForwardScope();
    ~ForwardScope();
    ForwardScope(const ForwardScope&) = delete;
    /// Ends it. Returns the bytes that stay.
    int64_t end();

   private:
    bool is_open_ = true;
  };
};

}  // namespace titan::core
