// The agent's rules against a fake server and a fake clock, and its lines.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plugins/parallelism/replicas/membership/agent_lines.h"
#include "plugins/parallelism/replicas/membership/agent_rules.h"
#include "plugins/parallelism/replicas/membership/wire.h"
#include "tests/plugins/error_of.h"

namespace titan::replicas {
namespace {

using std::chrono::milliseconds;
using titan::testing::error_of;
using titan::testing::holds;
using Kind = CallEnd::Kind;

/// An answer of the lighthouse with one member. In protobuf, an answer nests requests' members as
/// field 2 of field 1.
std::string answer_with(const std::string& id) {
  const std::string member = quorum_request({.id = id}).substr(2);  // without its tag and length
  std::string quorum = {'\x08', '\x05', '\x12', static_cast<char>(member.size())};
  quorum += member;
  return grpc_frame(std::string{'\x0a', static_cast<char>(quorum.size())} + quorum);
}

class FakeServer final : public Calls {
 public:
  void send_heartbeat(std::string frame) override { beats.push_back(std::move(frame)); }
  void send_quorum(std::string frame) override { requests.push_back(std::move(frame)); }
  void drop_quorum() override { ++dropped; }

  std::vector<std::string> beats, requests;
  int dropped = 0;
};

class AgentRulesTest : public ::testing::Test {
 protected:
  void alive() { rules_.take_line(R"({"alive": true})", now_); }
  /// Heartbeats that this starts end as `beat`.
  void tick(const CallEnd& beat = {}) {
    const size_t before = server_.beats.size();
    rules_.tick(now_);
    if (server_.beats.size() > before) rules_.heartbeat_ended(beat, now_);
  }
  void ask() {
    const Member member = {.id = "g:1", .step = 4};
    rules_.take_line(to_json(Value::map({{"ask", to_value(member)}})), now_);
    tick();
  }
  /// Ticks every 10 ms; the training process sends a line before each.
  void pass(milliseconds time, const CallEnd& beat = {}, bool is_alive = true) {
    for (const Time end = now_ + time; now_ < end;) {
      now_ += milliseconds(10);
      if (is_alive) alive();
      tick(beat);
    }
  }
  std::string said(const char* name) const {
    std::string text;
    for (const Value& line : lines_)
      if (const Value* value = line.find(name))
        text += (value->is_string() ? value->as_string() : to_json(*value)) + "\n";
    return text;
  }
  static std::string request_of(const std::string& id) {
    return grpc_frame(quorum_request({.id = id, .step = 4}));
  }

  const CallEnd refused_ = {.kind = Kind::not_sent, .problem = "refused"};
  const CallEnd silent_ = {.kind = Kind::timed_out, .problem = "timeout"};
  FakeServer server_;
  std::vector<Value> lines_;
  AgentRules rules_{{.lighthouse = "http://a:1", .setting = "TORCHFT_LIGHTHOUSE", .id = "g:1"},
                    server_,
                    [this](const Value& line) { lines_.push_back(line); }};
  Time now_{};
};

TEST_F(AgentRulesTest, BeatsEvery100MsWhileTheTrainerSendsLines) {
  rules_.tick(now_);
  EXPECT_TRUE(server_.beats.empty());  // it has sent none yet
  pass(milliseconds(2000));
  EXPECT_EQ(server_.beats.size(), 20u);
  EXPECT_EQ(server_.beats.front(), grpc_frame(heartbeat_request("g:1")));
}

TEST_F(AgentRulesTest, StopsBeatingOneSecondAfterTheLastLine) {
  pass(milliseconds(100));
  server_.beats.clear();
  pass(milliseconds(5000), {}, false);
  EXPECT_GE(server_.beats.size(), 9u);
  EXPECT_LE(server_.beats.size(), 10u);
  server_.beats.clear();
  pass(milliseconds(500));
  EXPECT_EQ(server_.beats.size(), 5u);
}

TEST_F(AgentRulesTest, BeatsWhileARequestIsOpen) {
  ask();
  EXPECT_EQ(server_.requests, std::vector{request_of("g:1")});
  pass(milliseconds(60000));
  EXPECT_NEAR(static_cast<double>(server_.beats.size()), 600, 1);
  EXPECT_EQ(server_.requests.size(), 1u);  // it is never repeated
}

TEST_F(AgentRulesTest, OneHeartbeatIsInFlightAtMost) {
  for (int i = 0; i < 100; ++i) {
    alive();
    rules_.tick(now_ += milliseconds(10));
  }
  EXPECT_EQ(server_.beats.size(), 1u);
}

TEST_F(AgentRulesTest, PassesTheAnswerOn) {
  ask();
  rules_.quorum_ended({.body = answer_with("g:1")}, now_);
  const Value answer = parse_json(said("quorum"));
  EXPECT_EQ(quorum_of(answer).members.at(0).id, "g:1");
  EXPECT_EQ(quorum_of(answer).self, "g:1");
  pass(milliseconds(1000));
  EXPECT_EQ(server_.requests.size(), 1u);
  ask();
  EXPECT_EQ(server_.requests.size(), 2u);
}

TEST_F(AgentRulesTest, ARefusedRequestWaitsForTenBeatsAndKeepsItsId) {
  ask();
  rules_.quorum_ended(refused_, now_);
  pass(milliseconds(3000), refused_);
  EXPECT_EQ(server_.requests.size(), 1u);
  pass(milliseconds(100));
  pass(milliseconds(900));
  EXPECT_EQ(server_.requests.size(), 1u);
  pass(milliseconds(200));
  EXPECT_EQ(server_.requests, (std::vector{request_of("g:1"), request_of("g:1")}));
  EXPECT_TRUE(holds(said("note"), "(TORCHFT_LIGHTHOUSE) does not answer: refused"));
  EXPECT_TRUE(holds(said("note"), "found the lighthouse at http://a:1"));
  EXPECT_EQ(lines_.size(), 2u);  // one note for each change
}

TEST_F(AgentRulesTest, ALostConnectionKeepsTheId) {
  ask();
  rules_.quorum_ended({.kind = Kind::lost, .problem = "reset"}, now_);
  pass(milliseconds(3000));
  EXPECT_EQ(server_.requests, (std::vector{request_of("g:1"), request_of("g:1")}));
}

TEST_F(AgentRulesTest, ARequestThatMayStillBeListedGetsANewId) {
  const CallEnd expired = {.status = 4, .problem = "gRPC status 4, Timeout expired"};
  for (const CallEnd& end : {silent_, expired}) {
    FakeServer server;
    std::vector<Value> lines;
    AgentRules rules({.lighthouse = "http://a:1", .setting = "S", .id = "g:1"}, server,
                     [&](const Value& line) { lines.push_back(line); });
    Time now{};
    rules.take_line(to_json(Value::map({{"ask", to_value(Member{.id = "g:1"})}})), now);
    rules.tick(now);
    rules.quorum_ended(end, now);
    server.beats.clear();
    rules.heartbeat_ended({}, now);
    rules.take_line(R"({"alive": true})", now += milliseconds(1100));
    rules.tick(now);
    ASSERT_EQ(server.requests.size(), 2u);
    EXPECT_NE(server.requests[0], server.requests[1]);
    // nobody beats for the old id, so that it dies
    ASSERT_EQ(server.beats.size(), 1u);
    EXPECT_NE(server.beats[0], grpc_frame(heartbeat_request("g:1")));
    EXPECT_EQ(server.beats[0].size(),
              grpc_frame(heartbeat_request(renewed_member_id("g:"))).size());
  }
}

TEST_F(AgentRulesTest, ASilentLighthouseIsAskedUnderANewId) {
  ask();
  pass(milliseconds(14000), silent_);
  EXPECT_EQ(server_.dropped, 0);
  pass(milliseconds(2000), silent_);
  EXPECT_EQ(server_.dropped, 1);
  EXPECT_EQ(server_.requests.size(), 1u);
  pass(milliseconds(2000));
  EXPECT_EQ(server_.requests.size(), 2u);
  EXPECT_TRUE(holds(said("note"), "because it may still list g:1"));
}

TEST_F(AgentRulesTest, AnAbsentLighthouseIsAnErrorAfterTheTimeout) {
  ask();
  rules_.quorum_ended(refused_, now_);
  pass(milliseconds(59000), refused_);
  EXPECT_FALSE(rules_.has_failed());
  pass(milliseconds(2000), refused_);
  EXPECT_TRUE(rules_.has_failed());
  EXPECT_EQ(said("failure"),
            "the lighthouse at http://a:1 (TORCHFT_LIGHTHOUSE) did not answer for 60 s: refused; "
            "start it, "
            "as in 'torchft_lighthouse --min_replicas 1', or correct TORCHFT_LIGHTHOUSE\n");
}

TEST_F(AgentRulesTest, WithoutARequestALossIsNoError) {
  pass(milliseconds(200000), refused_);
  EXPECT_FALSE(rules_.has_failed());
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(AgentRulesTest, ARejectedRequestIsAnError) {
  ask();
  rules_.quorum_ended({.status = 12, .problem = "gRPC status 12, unknown"}, now_);
  EXPECT_TRUE(rules_.has_failed());
  EXPECT_TRUE(
      holds(said("failure"), "rejects the request for the members: gRPC status 12, unknown"));
}

TEST_F(AgentRulesTest, AnAnswerThatItCannotUseIsAnError) {
  ask();
  rules_.quorum_ended({.body = "no frame, surely"}, now_);
  EXPECT_TRUE(holds(said("failure"), "cannot use the answer of the lighthouse at http://a:1"));
}

TEST_F(AgentRulesTest, AnAnswerWithoutTheAskerIsAnError) {
  ask();
  rules_.quorum_ended({.body = answer_with("other:1")}, now_);
  EXPECT_TRUE(holds(said("failure"), "it does not list g:1, which asked"));
}

TEST_F(AgentRulesTest, AStoppedTrainerDoesNotAskAgain) {
  ask();
  rules_.quorum_ended({.kind = Kind::lost, .problem = "reset"}, now_);
  rules_.heartbeat_ended({}, now_);
  now_ += milliseconds(1500);
  tick();
  EXPECT_EQ(server_.requests.size(), 1u);
  alive();
  tick();
  EXPECT_EQ(server_.requests.size(), 2u);
}

TEST_F(AgentRulesTest, UnknownLinesAreErrors) {
  EXPECT_TRUE(
      holds(error_of([&] { rules_.take_line(R"({"x": 1})", now_); }).what(), "unknown line"));
  EXPECT_EQ(error_of([&] { rules_.take_line("{", now_); }).kind(), ErrorKind::data);
  ask();
  EXPECT_TRUE(holds(error_of([&] { ask(); }).what(), "is open already"));
}

TEST_F(AgentRulesTest, NextTickIsNeverLaterThanABeat) {
  pass(milliseconds(55));
  EXPECT_LE(rules_.next_tick(now_), now_ + milliseconds(100));
  EXPECT_GE(rules_.next_tick(now_), now_);
}

TEST(AgentLines, MembersAndAnswersComeBackEqual) {
  const Member member = {.id = "r:1",
                         .address = "a\n\"",
                         .store = "s",
                         .step = INT64_MAX,
                         .world_size = 3,
                         .data = Value::map({{"x", Value::list({1, 2.5, "y", Value()})}}),
                         .commit_failures = 2};
  EXPECT_EQ(member_of(parse_json(to_json(to_value(member)))), member);
  const Quorum quorum = {.id = 3, .epoch = "3-1-2-f", .self = "r:1", .members = {member, member}};
  EXPECT_EQ(quorum_of(parse_json(to_json(to_value(quorum)))), quorum);
}

TEST(AgentLines, LinesAreWholeHoweverTheyArrive) {
  LineBuffer buffer;
  std::string line;
  buffer.add("ab");
  EXPECT_FALSE(buffer.next(line));
  buffer.add("c\nd\n\ne");
  EXPECT_TRUE(buffer.next(line));
  EXPECT_EQ(line, "abc");
  EXPECT_TRUE(buffer.next(line));
  EXPECT_EQ(line, "d");
  EXPECT_TRUE(buffer.next(line));
  EXPECT_EQ(line, "");
  EXPECT_FALSE(buffer.next(line));
}

}  // namespace
}  // namespace titan::replicas
