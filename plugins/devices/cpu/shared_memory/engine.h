// Progress engine of one group: moves the data of its operations through the rings and waits for
// the other ranks. Used by the shared memory backend.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "mailbox.h"
#include "operation.h"
#include "segment.h"

namespace titan::cpu {

/// Connects a group: the segments of all ranks, and a connection to each other rank. The kernel
/// closes a connection when that rank ends, however it ends.
struct Members {
  int rank = 0;
  SegmentLayout layout{1};
  std::vector<Segment> segments;
  std::vector<Descriptor> connections;  // by rank, that of this rank unused
};

/// start() moves as much as there is room for, which for most operations is everything; wait()
/// moves the rest. A helper thread moves data only while no thread waits and other ranks depend on
/// this one to finish an operation, because its data do not fit into the rings.
class Engine {
 public:
  explicit Engine(Members members);
  ~Engine();

  int rank() const { return members_.rank; }
  int size() const { return members_.layout.size; }

  /// Lanes for the parts of an operation that is about to be started. Except for `publish`, `rank`
  /// is another rank.
  SendChannel& publish() { return publish_; }
  ReceiveChannel& published_by(int rank) { return published_[index(rank)]; }
  SendChannel& to(int rank) { return to_[index(rank)]; }
  ReceiveChannel& from(int rank) { return from_[index(rank)]; }
  SendChannel& mail_to(int rank) { return mail_to_[index(rank)]; }

  /// Throws a std::runtime_error when the group has failed.
  void start(const std::shared_ptr<Operation>& operation);
  /// Throws a std::runtime_error on a timeout, when a rank has ended or when the group was aborted.
  void wait(Operation& operation, std::chrono::milliseconds timeout);
  /// [any thread] Ends all waits.
  void abort(const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;

  static size_t index(int rank) { return static_cast<size_t>(rank); }
  bool advance();
  void fail(const std::string& reason);
  void look_for_ended_ranks();
  bool waits_for(int rank);
  std::string awaited_ranks();
  /// Other ranks cannot finish before this rank sends more, or reads more.
  bool wants_help() const;
  void call_for_help();
  void help();

  Members members_;
  Futex& futex_;
  SendChannel publish_;
  // by rank, that of this rank unused:
  std::vector<SendChannel> to_, mail_to_;
  std::vector<ReceiveChannel> published_, from_;
  std::vector<Mailbox> mailboxes_;

  std::mutex mutex_;  // for all below, the channels and the progress of operations
  std::list<std::shared_ptr<Operation>> active_;
  std::optional<std::string> failure_;
  int num_waiting_ = 0;
  bool is_closed_ = false;
  std::condition_variable help_wanted_;
  std::thread helper_;  // started when first needed
};

}  // namespace titan::cpu
