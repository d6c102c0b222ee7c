// Judges the order of work on a device with streams: what may overlap although both touch the same
// memory, what memory goes back too early, and where the host waits. Knows no tensor; the recording
// device tells it what happens.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace titan::recording {

/// 0 is the default stream; the host is none.
using StreamId = int64_t;

/// Of each stream, how much of its work has come before.
using Clock = std::map<StreamId, uint64_t>;

/// Bytes [begin, end) that a kernel or a copy touches.
struct Access {
  uintptr_t begin = 0, end = 0;
  bool is_write = false;
};

/// What happened since the last step began, in the order in which the host gave it.
struct StepRecord {
  int64_t number = 0;
  int64_t num_launches = 0;             ///< kernels and copies
  int64_t num_waits = 0;                ///< of a stream for an event
  int64_t num_allocated = 0;            ///< pieces of device memory
  int64_t num_replays = 0;              ///< of graphs
  std::vector<std::string> host_waits;  ///< each with what it waited for
  std::vector<std::string> trace;       ///< one line per launch, wait and allocation
};

/// Every access has a place in its stream's order and a vector clock says what comes before it
/// (Lamport, 1978; Mattern, 1989): work of a stream follows the work that the stream was given
/// before, what events it waited for covered when they were recorded, and what the host had waited
/// for. Two accesses of the same bytes, one of them a write, neither before the other, are a race,
/// whatever the device would have done. Any thread may call.
class StreamOrder {
 public:
  /// Memory of `stream`'s pool: what is given back is handed out again at once, for what the stream
  /// is given next. So another stream may touch new memory only after what `stream` had been given.
  void allocate(uintptr_t begin, int64_t bytes, StreamId stream);
  /// Pinned memory of the host. Its allocator waits for the copies that use it by itself.
  void allocate_pinned(uintptr_t begin, int64_t bytes);
  /// A mistake where another stream may still use what is about to be freed: neither ordered before
  /// its own stream's next work nor kept by `keep_for`.
  void judge_free(uintptr_t begin);
  /// Nobody has it any more.
  void forget(uintptr_t begin);
  void free(uintptr_t begin) { judge_free(begin), forget(begin); }
  /// The allocator holds the block until `stream` has done what it was given before the block is
  /// freed.
  void keep_for(uintptr_t begin, StreamId stream);
  bool is_pinned(uintptr_t address) const;

  /// A mistake where it touches memory that nobody has.
  void launch(const std::string& what, StreamId stream, const std::vector<Access>& accesses);
  /// What `stream` was given up to now.
  Clock record(StreamId stream);
  void wait(StreamId stream, const Clock& event);
  /// The host stands still until `event` has happened.
  void host_wait(const std::string& what, const Clock& event);
  /// The same for all that `stream`, or any stream, was given.
  void host_wait_for_stream(const std::string& what, StreamId stream);
  void host_wait_for_all(const std::string& what);
  /// A wait that orders nothing that anybody relies on, as cudaMalloc's.
  void note(const std::string& what);

  /// While a graph is recorded the host may neither wait nor touch memory of the device.
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
    std::vector<Past> past;  // what a later access may still race with
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

/// The one of this process; never destroyed, for memory is freed until its very end.
StreamOrder& order();

}  // namespace titan::recording
