// When titan-replica sends heartbeats and requests, and what it does when one fails. Used by its
// main loop, which passes events and times in. No clock, no network: tests use a fake server.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "membership.h"

namespace titan::replicas {

using Time = std::chrono::steady_clock::time_point;

/// How a call to the lighthouse ended.
struct CallEnd {
  enum class Kind {
    answered,   ///< with a gRPC status
    not_sent,   ///< no connection
    lost,       ///< the connection ended before the answer
    timed_out,  ///< the lighthouse may still hold the request
  };
  Kind kind = Kind::answered;
  int status = 0;       ///< of gRPC; 0: success
  std::string problem;  ///< why it failed
  std::string body;     ///< a gRPC frame
};

/// Sends calls. At most one of each kind is in flight.
class Calls {
 public:
  virtual ~Calls();
  virtual void send_heartbeat(std::string frame) = 0;
  /// Without a time limit: a cancelled request stays listed in the lighthouse.
  virtual void send_quorum(std::string frame) = 0;
  /// Closes the connection of the request in flight; its end is not reported.
  virtual void drop_quorum() = 0;
};

struct AgentRulesOptions {
  std::string lighthouse, setting, id;  ///< as AgentOptions
  std::chrono::milliseconds beat{100}, connect_timeout{60000};
  std::chrono::milliseconds alive_for{1000};  ///< after a line from the training process
  std::chrono::milliseconds silence{15000};   ///< unanswered heartbeats until a request is dropped
};

/// Rules:
/// - Heartbeats go out every `beat` while the training process sends lines, and stop `alive_for`
///   after its last line. An open request does not count as a heartbeat for the lighthouse.
/// - A request whose connection was refused or ended is made again with the same id: a lighthouse
///   that restarted has lost its list.
/// - A request that a running lighthouse may still list is made again under a new id.
/// - After a loss, a request waits for ten beats from the first answered heartbeat. A restarted
///   lighthouse learns of all groups first, so that it does not answer the fastest one alone.
class AgentRules {
 public:
  /// `write` receives the lines for the training process. Both references outlive this object.
  AgentRules(AgentRulesOptions options, Calls& calls, std::function<void(const Value&)> write);

  /// A line of the training process. Throws a data Error for one of an unknown form.
  void take_line(const std::string& line, Time now);
  void heartbeat_ended(const CallEnd& end, Time now);
  void quorum_ended(const CallEnd& end, Time now);
  /// Starts what is due.
  void tick(Time now);
  /// When tick() must be called again at the latest.
  Time next_tick(Time now) const;
  /// The open request has failed; the program ends.
  bool has_failed() const { return has_failed_; }

 private:
  bool trainer_is_alive(Time now) const;
  void contact(Time now);
  void trouble(const std::string& why, Time now);
  void ask_under_new_id(const std::string& why);
  void answer(const CallEnd& end);
  void note(const std::string& text);
  void give_up(const std::string& why);
  std::string place() const;

  AgentRulesOptions options_;
  Calls& calls_;
  std::function<void(const Value&)> write_;
  std::string id_;                 // the present one
  std::optional<Time> last_line_;  // of the training process
  std::optional<Time> next_beat_;  // nothing: at once
  bool beat_in_flight_ = false, quorum_in_flight_ = false, has_failed_ = false;
  std::optional<Member> open_;  // the open request
  std::optional<Time> trouble_since_;
  std::string last_problem_;
  Time settled_{};  // requests wait until then
};

}  // namespace titan::replicas
