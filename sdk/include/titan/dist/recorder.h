// Records this rank's communication: the last collectives in a ring buffer, and the bytes that each
// group moved. Read when a collective fails, by benchmarks and by tests of traffic.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <titan/export.h>
#include <titan/step_phase.h>

namespace titan::dist {

/// One collective of this rank.
struct CommRecord {
  int64_t sequence = 0;  ///< number within its group, from 1; equal on all its ranks. Messages
                         ///< between two ranks are numbered per peer; equal on both ends
  std::string group;
  std::string operation;  ///< "all_gather", "send to 3", ...
  int64_t bytes = 0;      ///< bytes that this rank sends, by the operation's formula
  double started = 0;     ///< seconds on a monotonic clock
  double awaited = 0;     ///< when the wait for it began; 0 = not yet
  double finished = 0;    ///< when the wait for it ended; 0 = still in flight

  /// Whether it is between two ranks, so that the group's other ranks do not take part.
  bool is_message() const {
    return operation.starts_with("send to ") || operation.starts_with("receive from ");
  }
};

/// Calls and bytes of one operation of one group.
struct Traffic {
  int64_t calls = 0;
  int64_t bytes = 0;
};

/// Thread-safe.
class TITAN_API Recorder {
 public:
  /// Keeps the last `capacity` collectives; counts all.
  explicit Recorder(size_t capacity = 20000);

  /// Returns a ticket for `finish`.
  int64_t start(const std::string& group, std::string operation, int64_t bytes);
  void await(int64_t ticket);
  void finish(int64_t ticket);
  /// The record of a ticket; a default one if it has been overwritten.
  CommRecord find(int64_t ticket) const;

  /// The global ranks of a group, and the index of this rank among them. Set by the mesh, shown in
  /// profiles.
  struct Members {
    std::vector<int> ranks;
    int place = 0;
  };
  void set_members(const std::string& group, Members members);
  /// Empty if never set.
  Members members(const std::string& group) const;

  /// Current work of this rank, worded to follow "in step 3, in ": "forward of stage 2, microbatch
  /// 0". Empty: nothing specific. Shown when a run fails.
  void set_activity(std::string activity);
  std::string activity() const;
  /// Measures how this rank spends its time.
  StepClock& clock() { return clock_; }
  const StepClock& clock() const { return clock_; }

  /// Oldest first.
  std::vector<CommRecord> records() const;
  /// Since the start; exceeds the size of `records` once the ring is full.
  int64_t num_started() const;
  /// Collectives in flight (started and not waited for), oldest first.
  std::vector<CommRecord> in_flight() const;
  std::vector<CommRecord> under_way() const { return in_flight(); }  ///< deprecated, until 0.3
  /// Keyed by (group, operation); operations without their peer: "send".
  std::map<std::pair<std::string, std::string>, Traffic> traffic() const;
  /// Bytes over all groups and operations since the start.
  int64_t total_bytes() const;

 private:
  struct Entry {
    int64_t ticket = -1;
    CommRecord record;
  };
  const Entry* entry_of(int64_t ticket) const;

  StepClock clock_;
  mutable std::mutex mutex_;
  std::string activity_;
  std::vector<Entry> ring_;
  int64_t next_ticket_ = 0;
  int64_t total_bytes_ = 0;
  std::map<std::string, int64_t> sequences_;  // by group; for messages by group and operation
  std::map<std::pair<std::string, std::string>, Traffic> traffic_;
  std::map<std::string, Members> members_;
};

}  // namespace titan::dist
