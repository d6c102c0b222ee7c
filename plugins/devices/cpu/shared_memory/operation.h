// The data that one collective still has to move through the rings. Its parts make progress each
// time advance() is called and never block. Used by Engine and the shared memory backend.
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

/// Precedes the bytes of a message, on a cache line of its own.
struct alignas(kLine) MessageHeader {
  uint64_t bytes;
  int64_t tag;
};
static_assert(sizeof(MessageHeader) == kLine);

/// Most bytes that a part moves before other parts get their turn and the peer is woken.
inline constexpr uint64_t kPiece = 128 << 10;

/// The writing end of a ring. Operations use it one after the other, each in its turn.
struct SendChannel {
  RingWriter ring;
  std::vector<int> ranks;       // the readers
  std::vector<Futex*> futexes;  // of the readers
  uint64_t next_turn = 0, turn = 0;

  void wake_readers() const {
    for (Futex* futex : futexes) futex->wake();
  }
};

/// The reading end of a ring.
struct ReceiveChannel {
  RingReader ring;
  int rank = 0;            // the writer
  Futex* futex = nullptr;  // of the writer
  uint64_t next_turn = 0, turn = 0;
  // Bytes of expected messages with their headers. Access by std::atomic_ref only: the trainer's
  // thread adds in expect() while the helper thread subtracts in release().
  mutable uint64_t unread = 0;

  /// Registers a message of `bytes` bytes; returns its turn.
  uint64_t expect(uint64_t bytes);
  void release(uint64_t bytes);
  /// The writer cannot finish before this rank reads more: the ring does not hold the rest.
  bool is_short_of_space() const;
};

/// Bytes that `bytes` take in a ring, where every message and piece starts on its own line.
constexpr uint64_t whole_lines(uint64_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

/// One message to send.
class SendMessage {
 public:
  /// `ready`: number of bytes that may be sent already; null = all.
  SendMessage(SendChannel& channel, const void* data, uint64_t bytes, int64_t tag = 0,
              const uint64_t* ready = nullptr);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;
  const uint64_t& sent() const { return sent_; }

 private:
  SendChannel* channel_;
  const std::byte* data_;
  uint64_t bytes_, turn_;
  int64_t tag_;
  const uint64_t* ready_;
  uint64_t sent_ = 0;
  bool header_sent_ = false, is_done_ = false;
};

/// Reads the header of the next message and checks its size; false if it has not come yet. Throws a
/// std::runtime_error when the other rank sent a message of another size.
bool take_header(ReceiveChannel& channel, uint64_t expected_bytes);

/// One message to receive, copied to its place.
class ReceiveMessage {
 public:
  ReceiveMessage(ReceiveChannel& channel, void* place, uint64_t bytes);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;

 private:
  ReceiveChannel* channel_;
  std::byte* place_;
  uint64_t bytes_, turn_;
  uint64_t done_ = 0;
  bool header_seen_ = false, is_done_ = false;
};

/// Messages of equal size from all other ranks, consumed together in the rings without a copy.
class FanInReduce {
 public:
  /// `sources[r]`: address of byte `offset` of the message of rank r; null for this rank.
  using Use = std::function<void(uint64_t offset, uint64_t bytes, const std::byte* const* sources)>;

  /// `size`: ranks of the group. `limit`: number of bytes that may be used already; null = all.
  FanInReduce(const std::vector<ReceiveChannel*>& channels, int size, uint64_t bytes, Use use,
              const uint64_t* limit = nullptr);

  bool advance();
  bool is_done() const { return is_done_; }
  bool waits_for(int rank) const;
  const uint64_t& done() const { return done_; }

 private:
  struct Part {
    ReceiveChannel* channel;
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

/// A message requested by its tag; a Mailbox fills it.
struct Expected {
  int rank = 0;  // the sender
  int64_t tag = 0;
  std::byte* place = nullptr;
  uint64_t bytes = 0;
  bool is_done = false;
};

/// Everything of one collective. Never moved, because its parts hold pointers into it.
struct Operation {
  Operation() = default;
  Operation(const Operation&) = delete;

  std::vector<at::Tensor> tensors;  // kept alive
  std::vector<SendMessage> outgoing;
  std::vector<ReceiveMessage> incoming;
  std::optional<FanInReduce> fan_in;
  std::optional<Expected> expected;
  std::function<void()> finish;  // called in wait(), when all data have come

  bool advance();
  bool is_done() const;
  bool has_unsent() const;
  /// `rank` must act before anything moves; called when nothing moves. Ignores `expected`.
  bool waits_for(int rank) const;
};

}  // namespace titan::cpu
