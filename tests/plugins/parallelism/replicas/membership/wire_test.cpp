// The bytes of membership_referee.py --show, which Google's protobuf made; that script compares
// many more. Malformed messages.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "plugins/parallelism/replicas/membership/wire.h"
#include "tests/plugins/error_of.h"

namespace titan::replicas {
namespace {

using titan::testing::error_of;
using titan::testing::holds;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

const Member kMember = {.id = "replica_1:u",
                        .address = "http://b:1",
                        .store = "b:2",
                        .step = 300,
                        .world_size = 2,
                        .data = Value::map({{"lineage", "ff"}}),
                        .commit_failures = -1};

// the first member of the answer has a field of newer servers
const std::string kAnswer = from_hex(
    "0a6f080712430a0b7265706c6963615f313a75120a687474703a2f2f623a311a03623a3220ac0228023a107b226c69"
    "6e65616765223a226666227d40ffffffffffffffffff014a016812200a0b7265706c6963615f303a75120a68747470"
    "3a2f2f623a311a03623a3228021a0408051009");

TEST(MembershipWire, RequestsAreTheBytesOfProtobuf) {
  EXPECT_EQ(
      quorum_request(kMember),
      from_hex("0a400a0b7265706c6963615f313a75120a687474703a2f2f623a311a03623a3220ac0228023a10"
               "7b226c696e65616765223a226666227d40ffffffffffffffffff01"));
  EXPECT_EQ(grpc_frame(heartbeat_request("a:1")), from_hex("00000000050a03613a31"));
  EXPECT_EQ(quorum_request({.world_size = 0}), from_hex("0a00"));
}

TEST(MembershipWire, AnswersOfProtobufAreReadAndSorted) {
  const Quorum quorum = quorum_response(kAnswer);
  EXPECT_EQ(quorum.id, 7);
  EXPECT_TRUE(quorum.epoch.starts_with("7-5-9-")) << quorum.epoch;
  ASSERT_EQ(quorum.members.size(), 2u);
  Member other = kMember;
  other.id = "replica_0:u";
  other.step = 0;
  other.data = {};
  other.commit_failures = 0;
  EXPECT_EQ(quorum.members[0], other);
  EXPECT_EQ(quorum.members[1], kMember);
}

TEST(MembershipWire, EveryCutAnswerIsAnError) {
  for (size_t size = 0; size < kAnswer.size(); ++size)
    EXPECT_TRUE(holds(error_of([&] { quorum_response(kAnswer.substr(0, size)); }).what(),
                      "while reading the lighthouse's answer"))
        << size;
}

TEST(MembershipWire, DamagedAnswersAreReadOrAreErrors) {
  std::mt19937 chance(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = kAnswer;
    bytes[chance() % bytes.size()] = static_cast<char>(chance());
    try {
      quorum_response(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    }
  }
}

TEST(MembershipWire, EpochsDifferInNumberTimeAndIds) {
  const auto epoch = [](const char* hex) { return quorum_response(from_hex(hex)).epoch; };
  const std::string one = epoch(
      "0a0a08071204"
      "0a026161"
      "1a00");
  EXPECT_NE(one, epoch("0a0a08081204"
                       "0a026161"
                       "1a00"));
  EXPECT_NE(one, epoch("0a0a08071204"
                       "0a026162"
                       "1a00"));
  EXPECT_NE(one, epoch("0a0c08071204"
                       "0a026161"
                       "1a021001"));
}

TEST(MembershipWire, DataThatIsNoJsonIsAText) {
  EXPECT_EQ(quorum_response(from_hex("0a0712053a037b7b7b")).members.at(0).data, Value("{{{"));
}

TEST(MembershipWire, FramesHoldExactlyOneMessage) {
  EXPECT_EQ(grpc_message(grpc_frame("abc")), "abc");
  const std::string long_text(70000, 'x');
  EXPECT_EQ(grpc_message(grpc_frame(long_text)), long_text);
  EXPECT_TRUE(holds(error_of([] { grpc_message("abc"); }).what(), "no message of gRPC"));
  EXPECT_TRUE(holds(error_of([] { grpc_message(grpc_frame("abc") + "d"); }).what(),
                    "4 bytes instead of 3"));
  std::string compressed = grpc_frame("abc");
  compressed[0] = 1;
  EXPECT_TRUE(holds(error_of([&] { grpc_message(compressed); }).what(), "is compressed"));
}

TEST(MembershipWire, MessagesOfGrpcAreDecoded) {
  EXPECT_EQ(percent_decoded("missing%20requester%2e"), "missing requester.");
  EXPECT_EQ(percent_decoded("50% %zz %4"), "50% %zz %4");
}

}  // namespace
}  // namespace titan::replicas
