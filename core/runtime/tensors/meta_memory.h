// Counts the memory that tensors on the meta device would take, by use, over their lifetimes, and
// its peak. Used for simulated ranks.
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

/// The moment of the highest total.
struct MemoryPeak {
  UseBytes bytes;
  std::string place;  ///< what was running: "backward of layers.31"
};

/// Counts for the whole process, on any thread. Blocks count their requested bytes, without the
/// rounding of an allocator.
///
/// A MemoryUseScope sets the use of an allocation. Outside such scopes memory is temporary until
/// `relabel` or a ForwardScope assigns a use, which also corrects the peak if it has passed: its
/// sums always add up to its total.
/// always add up to its total.
class MetaMemory {
 public:
  /// From now on new tensors on the meta device are counted.
  static void start_counting();
  /// The bytes that exist now.
  static UseBytes live();
  /// The most at once since the last reset.
  static MemoryPeak peak();
  /// Makes the current moment the peak.
  static void reset_peak();
  /// Names the work that runs from now on.
  static void set_place(std::string place);
  /// Assigns the memory of `tensor` to `use`; does nothing if the memory was not allocated by this
  /// class.
  static void relabel(const at::Tensor& tensor, MemoryUse use);

  /// The forward of one layer: temporary memory that still exists at its end is needed by the
  /// backward.
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
