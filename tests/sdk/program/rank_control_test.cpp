// A control channel keeps the borders of messages, and says when the other process has ended.
#include <titan/program/rank_control.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace titan {
namespace {

using Kind = ControlMessage::Kind;

TEST(RankControl, MessagesArriveWholeAndInOrder) {
  ControlPair pair = make_control_pair();
  ControlEnd rank(std::move(pair.of_rank));
  EXPECT_FALSE(rank.receive());
  const std::string text = "a \"quoted\" line\nand another\xff";
  ASSERT_TRUE(pair.of_launcher.send({.kind = Kind::begin, .round = 3, .rank = 2, .port = 65535}));
  ASSERT_TRUE(pair.of_launcher.send({.kind = Kind::abort, .round = 3, .text = text}));
  const auto begin = rank.receive(), abort = rank.receive();
  ASSERT_TRUE(begin && abort);
  EXPECT_EQ(begin->kind, Kind::begin);
  EXPECT_EQ(begin->round, 3);
  EXPECT_EQ(begin->rank, 2);
  EXPECT_EQ(begin->port, 65535);
  EXPECT_EQ(abort->kind, Kind::abort);
  EXPECT_EQ(abort->text.substr(0, 27), text.substr(0, 27));
  EXPECT_FALSE(rank.receive());
  EXPECT_FALSE(rank.is_closed());
}

TEST(RankControl, ALongErrorIsCutAndArrives) {
  ControlPair pair = make_control_pair();
  ControlEnd rank(std::move(pair.of_rank));
  ASSERT_TRUE(rank.send({.kind = Kind::failed, .text = std::string(1 << 20, '\x01')}));
  const auto message = pair.of_launcher.receive();
  ASSERT_TRUE(message);
  EXPECT_GT(message->text.size(), 1000u);
}

TEST(RankControl, TheEndOfTheOtherProcessIsKnown) {
  ControlPair pair = make_control_pair();
  pair.of_rank.close();
  EXPECT_FALSE(pair.of_launcher.receive());
  EXPECT_TRUE(pair.of_launcher.is_closed());
  EXPECT_FALSE(pair.of_launcher.send({.kind = Kind::end}));
}

TEST(RankControl, AVariableThatNamesNoChannelIsAnError) {
  ::setenv(ControlPair::kVariable, "997", 1);
  try {
    ControlEnd::of_process();
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "TITAN_CONTROL_SOCKET = 997 is no channel to titan launch; unset it");
  }
  ::unsetenv(ControlPair::kVariable);
  EXPECT_FALSE(ControlEnd::of_process());
}

}  // namespace
}  // namespace titan
