#include "agent_rules.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "agent_lines.h"
#include "wire.h"

namespace titan::replicas {
namespace {

constexpr int kBeatsToSettle = 10;

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
constexpr int kCancelled = 1, kDeadlineExceeded = 4, kUnavailable = 14;

std::string seconds_text(std::chrono::steady_clock::duration time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return detail::concat(static_cast<double>(ms) / 1000, " s");
}

}  // namespace

Calls::~Calls() = default;

AgentRules::AgentRules(AgentRulesOptions options, Calls& calls,
                       std::function<void(const Value&)> write)
    : options_(std::move(options)), calls_(calls), write_(std::move(write)), id_(options_.id) {}

std::string AgentRules::place() const {
  return "the lighthouse at " + options_.lighthouse + " (" + options_.setting + ")";
}

void AgentRules::note(const std::string& text) {
  write_(Value::map({{"note", text}}));
}

void AgentRules::give_up(const std::string& why) {
  has_failed_ = true;
  write_(Value::map({{"failure", why}}));
}

bool AgentRules::trainer_is_alive(Time now) const {
  return last_line_ && now - *last_line_ <= options_.alive_for;
}

void AgentRules::take_line(const std::string& line, Time now) {
  const Value value = parse_json(line);
  last_line_ = now;
  if (const Value* member = value.find("ask")) {
    TITAN_CHECK(!open_, data, "a request for the members is open already");
    open_ = member_of(*member);
  } else {
    TITAN_CHECK(value.find("alive"), data, "unknown line '", line, "'");
  }
}

void AgentRules::contact(Time now) {
  if (!trouble_since_) return;
  note(detail::concat("found ", place(), " after ", seconds_text(now - *trouble_since_)));
  trouble_since_.reset();
  settled_ = now + kBeatsToSettle * options_.beat;
}

void AgentRules::trouble(const std::string& why, Time now) {
  last_problem_ = why;
  if (trouble_since_) return;
  trouble_since_ = now;
  note(detail::concat(place(), " does not answer: ", why,
                      "; trying again, and a request fails after ",
                      seconds_text(options_.connect_timeout)));
}

void AgentRules::ask_under_new_id(const std::string& why) {
  const std::string old = std::exchange(id_, renewed_member_id(id_));
  note(detail::concat("asking ", place(), " again as ", id_, ", because it may still list ", old,
                      ": ", why));
}

void AgentRules::heartbeat_ended(const CallEnd& end, Time now) {
  beat_in_flight_ = false;
  if (end.kind == CallEnd::Kind::answered && end.status == 0)
    contact(now);
  else
    trouble(end.problem, now);
}

void AgentRules::answer(const CallEnd& end) {
  try {
    Quorum quorum = quorum_response(grpc_message(end.body));
    quorum.self = id_;
    TITAN_CHECK(std::any_of(quorum.members.begin(), quorum.members.end(),
                            [&](const Member& member) { return member.id == id_; }),
                data, "it does not list ", id_, ", which asked");
    open_.reset();
    write_(Value::map({{"quorum", to_value(quorum)}}));
  } catch (const Error& error) {
    give_up(detail::concat("cannot use the answer of ", place(), ": ", error.what()));
  }
}

void AgentRules::quorum_ended(const CallEnd& end, Time now) {
  quorum_in_flight_ = false;
  switch (end.kind) {
    case CallEnd::Kind::not_sent:
    case CallEnd::Kind::lost:
      trouble(end.problem, now);
      return;
    case CallEnd::Kind::timed_out:
      trouble(end.problem, now);
      ask_under_new_id(end.problem);
      return;
    case CallEnd::Kind::answered:
      break;
  }
  if (end.status == 0) {
    answer(end);
  } else if (end.status == kCancelled || end.status == kDeadlineExceeded ||
             end.status == kUnavailable) {
    trouble(end.problem, now);
    ask_under_new_id(end.problem);
  } else {
    give_up(detail::concat(place(), " rejects the request for the members: ", end.problem,
                           "; check that torchft's lighthouse is at that address"));
  }
}

void AgentRules::tick(Time now) {
  if (has_failed_) return;
  if (trouble_since_ && open_ && now - *trouble_since_ >= options_.connect_timeout) {
    give_up(detail::concat(place(), " did not answer for ", seconds_text(options_.connect_timeout),
                           ": ", last_problem_,
                           "; start it, as in 'torchft_lighthouse --min_replicas 1', or correct ",
                           options_.setting));
    return;
  }
  if (trouble_since_ && quorum_in_flight_ && now - *trouble_since_ >= options_.silence) {
    calls_.drop_quorum();
    quorum_in_flight_ = false;
    ask_under_new_id(detail::concat("it did not answer for ", seconds_text(options_.silence)));
  }
  if (!trainer_is_alive(now)) return;
  if (!beat_in_flight_ && (!next_beat_ || now >= *next_beat_)) {
    beat_in_flight_ = true;
    next_beat_ = now + options_.beat;
    calls_.send_heartbeat(grpc_frame(heartbeat_request(id_)));
  }
  if (open_ && !quorum_in_flight_ && !trouble_since_ && now >= settled_) {
    quorum_in_flight_ = true;
    open_->id = id_;
    calls_.send_quorum(grpc_frame(quorum_request(*open_)));
  }
}

Time AgentRules::next_tick(Time now) const {
  const Time beat = next_beat_.value_or(now);
  return std::min(std::max(beat, now), now + options_.beat);
}

}  // namespace titan::replicas
