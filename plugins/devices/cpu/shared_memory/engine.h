// Moves what the operations of one group have to move, and waits for the other ranks.
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

/// What holds a group together: all its segments, by rank, and a connection to each other rank,
/// which the kernel closes when that ends, however it ends.
struct Members {
  int rank = 0;
  SegmentLayout layout{1};
  std::vector<Segment> segments;
  std::vector<Descriptor> connections;  // none to itself
};

/// Who starts an operation moves what there is room for, which for most is all; who waits for one
/// does the rest. A thread of its own steps in only while an operation that others cannot finish
/// without this rank is under way and nobody waits: data that do not fit into the rings.
class Engine {
 public:
  explicit Engine(Members members);
  ~Engine();

  int rank() const { return members_.rank; }
  int size() const { return members_.layout.size; }

  /// For the parts of an operation that is about to be started. All but `published` are of other
  /// ranks.
  SendLane& publish() { return publish_; }
  ReceiveLane& published_by(int rank) { return published_[index(rank)]; }
  SendLane& to(int rank) { return to_[index(rank)]; }
  ReceiveLane& from(int rank) { return from_[index(rank)]; }
  SendLane& mail_to(int rank) { return mail_to_[index(rank)]; }

  /// Throws a std::runtime_error when the group has failed.
  void start(const std::shared_ptr<Operation>& operation);
  /// Throws a std::runtime_error when the time is over, a rank has ended or the group was given up.
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
  /// Others cannot finish before this rank sends more, or reads more.
  bool wants_help() const;
  void call_for_help();
  void help();

  Members members_;
  Bell& bell_;
  SendLane publish_;
  // by rank, those of this one unused:
  std::vector<SendLane> to_, mail_to_;
  std::vector<ReceiveLane> published_, from_;
  std::vector<Mailbox> mailboxes_;

  std::mutex mutex_;  // for all below, the lanes and what operations have moved
  std::list<std::shared_ptr<Operation>> active_;
  std::optional<std::string> failure_;
  int num_waiting_ = 0;
  bool is_closed_ = false;
  std::condition_variable help_wanted_;
  std::thread helper_;  // started when it is needed first
};

}  // namespace titan::cpu
