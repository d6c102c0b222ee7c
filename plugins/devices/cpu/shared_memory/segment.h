// The memory that one rank of a group writes and all its ranks map: the rank's futex and rings.
// Used by the rendezvous and Engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ring.h"

namespace titan::cpu {

/// Sizes of the rings in a group of `size` ranks. Pages that are never used take no memory.
struct SegmentLayout {
  int size;
  uint64_t published_bytes;  ///< capacity of the ring that all others read
  uint64_t direct_bytes;     ///< of each ring to one other rank; there are two to each

  explicit SegmentLayout(int size);

  uint64_t segment_bytes() const;
};

/// Owns a file descriptor and closes it.
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

/// A mapped segment: anonymous memory behind a descriptor. It has no name, does not use /dev/shm,
/// and disappears with the last process that maps it, however that ends.
class Segment {
 public:
  /// A new, empty segment, sealed at its size. Throws a std::system_error if memfd is unavailable.
  static Segment create(const SegmentLayout& layout, int rank, Descriptor& descriptor);
  /// Maps that of another rank. Throws a std::runtime_error if it does not match `layout`.
  static Segment map(const SegmentLayout& layout, int rank, const Descriptor& descriptor);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  Futex& futex() const;
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
