// What one collective still has to move through the rings: parts that advance a little whenever
// they are asked, and never wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ring.h"

namespace titan::cpu {

/// Stands before the bytes of a message, on a line of its own.
struct alignas(kLine) MessageHeader {
  uint64_t bytes;
  int64_t tag;
};
static_assert(sizeof(MessageHeader) == kLine);

/// Most bytes that a part moves before others have their turn and the other side hears of it.
inline constexpr uint64_t kPiece = 128 << 10;

/// The writing end of a ring, which operations use one after the other.
struct SendLane {
  RingWriter ring;
  std::vector<int> ranks;    // that read
  std::vector<Bell*> bells;  // of those
  uint64_t next_turn = 0, turn = 0;

  void ring_bells() const {
    for (Bell* bell : bells) bell->ring();
  }
};

/// The reading end of a ring.
struct ReceiveLane {
  RingReader ring;
  int rank = 0;          // that writes
  Bell* bell = nullptr;  // of that
  uint64_t next_turn = 0, turn = 0;
  // bytes of messages that are expected, with their headers; by std::atomic_ref alone, for the
  // trainer's thread expects while the helper's releases
  mutable uint64_t unread = 0;

  /// A message of so many bytes is expected; gives its turn.
  uint64_t expect(uint64_t bytes);
  void release(uint64_t bytes);
  /// The writer cannot finish before this rank has read more: the ring does not hold the rest.
  bool is_short_of_space() const;
};

/// What `bytes` take in a ring, where every message and piece starts on a line of its own.
constexpr uint64_t whole_lines(uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

/// One message out.
class Outgoing {
 public:
  /// `ready`: how many of the bytes may go already; null = all.
  Outgoing(SendLane& lane, const void* data, uint64_t bytes, int64_t tag = 0,
           const uint64_t* ready = nullptr);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;
  const uint64_t& sent() const { return sent_; }

 private:
  SendLane* lane_;
  const std::byte* data_;
  uint64_t bytes_, turn_;
  int64_t tag_;
  const uint64_t* ready_;
  uint64_t sent_ = 0;
  bool header_sent_ = false, is_done_ = false;
};

/// Reads the header of the next message and checks its size; false: it has not come. Throws a
/// std::runtime_error when the other rank sent something else.
bool take_header(ReceiveLane& lane, uint64_t expected_bytes);

/// One message in, copied to its place.
class Incoming {
 public:
  Incoming(ReceiveLane& lane, void* place, uint64_t bytes);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;

 private:
  ReceiveLane* lane_;
  std::byte* place_;
  uint64_t bytes_, turn_;
  uint64_t done_ = 0;
  bool header_seen_ = false, is_done_ = false;
};

/// Messages of equal size from all other ranks, used together where they lie.
class Joint {
 public:
  /// `sources[r]`: where byte `offset` of what rank r sent lies; null for this rank.
  using Use = std::function<void(uint64_t offset, uint64_t bytes, const std::byte* const* sources)>;

  /// `size`: ranks of the group. `limit`: how many of the bytes may be used already; null = all.
  Joint(const std::vector<ReceiveLane*>& lanes, int size, uint64_t bytes, Use use,
        const uint64_t* limit = nullptr);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;
  const uint64_t& done() const { return done_; }

 private:
  struct Part {
    ReceiveLane* lane;
    uint64_t turn;
    bool header_seen = false;
  };
  std::vector<Part> parts_;
  std::vector<const std::byte*> sources_;
  uint64_t bytes_;
  Use use_;
  const uint64_t* limit_;
  uint64_t done_ = 0;
  bool is_done_ = false;
};

/// A message that is waited for by its tag; a Mailbox fills it.
struct Expected {
  int rank = 0;  // that sends it
  int64_t tag = 0;
  std::byte* place = nullptr;
  uint64_t bytes = 0;
  bool is_done = false;
};

/// Everything of one collective. Its parts point into it: it stays where it is.
struct Operation {
  Operation() = default;
  Operation(const Operation&) = delete;

  std::vector<at::Tensor> tensors;  // kept alive
  std::vector<Outgoing> outgoing;
  std::vector<Incoming> incoming;
  std::optional<Joint> joint;
  std::optional<Expected> expected;
  std::function<void()> finish;  // by who waits, when all has come

  bool advance();
  bool is_done() const;
  bool has_unsent() const;
  /// Nothing moves before this rank does something; asked when nothing moves. Not about `expected`.
  bool waits_for(int rank) const;
};

}  // namespace titan::cpu
