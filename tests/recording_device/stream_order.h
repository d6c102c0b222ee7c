// Checks the order of work on a device with streams: unordered accesses to the same memory, memory
// that is freed too early, and waits of the host. Independent of tensors; the recording device
// reports all events.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace titan::recording {

/// 0 is the default stream. The host has no id.
using StreamId = int64_t;

/// For each stream, how much of its work is ordered before.
using Clock = std::map<StreamId, uint64_t>;

/// Bytes [begin, end) that a kernel or a copy touches.
struct Access {
  uintptr_t begin = 0, end = 0;
  bool is_write = false;
};

/// Events since the last step began, in the order of submission by the host.
struct StepRecord {
  int64_t number = 0;
  int64_t num_launches = 0;             ///< kernels and copies
  int64_t num_waits = 0;                ///< waits of a stream for an event
  int64_t num_allocated = 0;            ///< blocks of device memory
  int64_t num_replays = 0;              ///< graph replays
  std::vector<std::string> host_waits;  ///< each with its reason
  std::vector<std::string> trace;       ///< one line per launch, wait and allocation
};

/// Each access has a place in its stream's order; a vector clock gives the work ordered before it
/// (Lamport, 1978; Mattern, 1989). Work of a stream is ordered after earlier work of the stream,
/// after the events that the stream waited for, and after everything that the host had waited for.
/// Two unordered accesses to the same bytes, one of them a write, are a race, even if a device
/// would run them in order. Any thread may call.
class StreamOrder {
 public:
  /// Allocates from `stream`'s pool, which reuses freed memory at once for later work of that
  /// stream. So another stream may touch new memory only after the work submitted to `stream` so
  /// far.
  void allocate(uintptr_t begin, int64_t bytes, StreamId stream);
  /// Pinned host memory. Its allocator itself waits for copies that use it.
  void allocate_pinned(uintptr_t begin, int64_t bytes);
  /// Reports a mistake if another stream may still use the block: its work is neither ordered
  /// before the next work of the block's stream nor announced by `keep_for`.
  void judge_free(uintptr_t begin);
  /// The memory has no owner any more.
  void forget(uintptr_t begin);
  void free(uintptr_t begin) { judge_free(begin), forget(begin); }
  /// The allocator keeps the freed block until `stream` has finished the work submitted before.
  void keep_for(uintptr_t begin, StreamId stream);
  bool is_pinned(uintptr_t address) const;

  /// Reports a mistake if it touches unallocated memory.
  void launch(const std::string& what, StreamId stream, const std::vector<Access>& accesses);
  /// The work submitted to `stream` so far.
  Clock record(StreamId stream);
  void wait(StreamId stream, const Clock& event);
  /// The host blocks until `event` has happened.
  void host_wait(const std::string& what, const Clock& event);
  /// The same for all work submitted to `stream`, or to any stream.
  void host_wait_for_stream(const std::string& what, StreamId stream);
  void host_wait_for_all(const std::string& what);
  /// A wait on whose order no code relies, like that of cudaMalloc.
  void note(const std::string& what);

  /// During a recording the host may neither wait nor touch device memory.
  void set_capturing(bool is_capturing);
  void note_replay();

  void begin_step(int64_t number);
  std::vector<StepRecord> steps() const;
  std::vector<std::string> mistakes() const;
  int64_t bytes_in_use() const;
  int64_t peak_bytes() const;
  void reset_peak();

 private:
  struct Past {
    Access access;
    StreamId stream = 0;
    uint64_t time = 0;
    std::string what;
  };
  struct Block {
    int64_t bytes = 0;
    StreamId stream = 0;
    bool is_pinned = false;
    std::set<StreamId> kept_for;
    std::vector<Past> past;  // accesses that may race with a later one
  };

  Block* block_at(uintptr_t address);
  void touch(Block& block, const Past& now);
  bool is_before(const Past& past, StreamId stream) const;
  void complain(std::string text);
  void complain_of_wait(const std::string& what);
  StepRecord& step();

  mutable std::mutex mutex_;
  std::map<StreamId, Clock> clocks_;
  Clock host_;
  std::map<uintptr_t, Block> blocks_;
  std::vector<StepRecord> steps_;
  std::vector<std::string> mistakes_;
  int64_t in_use_ = 0, peak_ = 0;
  bool is_capturing_ = false;
};

/// The instance of this process. Never destroyed, because memory is freed until the process ends.
StreamOrder& order();

}  // namespace titan::recording
