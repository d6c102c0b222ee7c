// The memory that one rank of a group writes to and all of them map: its bell and its rings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ring.h"

namespace titan::cpu {

/// How large the rings are in a group of `size` ranks. What is never used takes no memory.
struct SegmentLayout {
  int size;
  uint64_t published_bytes;  ///< capacity of the ring that all others read
  uint64_t direct_bytes;     ///< of each ring to one other rank; there are two to each

  explicit SegmentLayout(int size);

  uint64_t segment_bytes() const;
};

/// A file descriptor that is closed in the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

/// A mapped segment. Anonymous memory behind a descriptor: it has no name, takes nothing of
/// /dev/shm, and is gone with the last process that maps it, however that ends.
class Segment {
 public:
  /// A new one, empty, sealed at its size. Throws a std::system_error where there is no memfd.
  static Segment create(const SegmentLayout& layout, int rank, Descriptor& descriptor);
  /// That of another rank. Throws a std::runtime_error when it is not what `layout` says.
  static Segment map(const SegmentLayout& layout, int rank, const Descriptor& descriptor);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  Bell& bell() const;
  /// Read by all other ranks: reader number r for rank r below this one, r - 1 above.
  RingPlace published() const;
  enum class Use { collectives, messages };
  /// Read by `reader` alone.
  RingPlace direct(int reader, Use use) const;

 private:
  Segment(const SegmentLayout& layout, int rank, std::byte* memory);

  SegmentLayout layout_;
  int rank_;
  std::byte* memory_;
};

}  // namespace titan::cpu
