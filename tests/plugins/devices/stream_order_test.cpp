// The checker of the recording device detects orders that are wrong on purpose, and accepts the
// corrected ones.
#include "stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan::recording::stream_order_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr StreamId kMain = 0, kSide = 1, kThird = 2;
constexpr uintptr_t kBlock = 0x1000, kOther = 0x9000;

Access reads(uintptr_t begin, uintptr_t bytes = 64) {
  return {.begin = begin, .end = begin + bytes, .is_write = false};
}
Access writes(uintptr_t begin, uintptr_t bytes = 64) {
  return {.begin = begin, .end = begin + bytes, .is_write = true};
}

class StreamOrderTest : public ::testing::Test {
 protected:
  StreamOrderTest() { order_.allocate(kBlock, 256, kMain); }
  void let_wait(StreamId stream, StreamId other) { order_.wait(stream, order_.record(other)); }

  StreamOrder order_;
};

TEST_F(StreamOrderTest, AReadBesideTheWriteIsAMistake) {
  order_.launch("fill", kMain, {writes(kBlock)});
  order_.launch("use", kSide, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(),
              ElementsAre(HasSubstr("'use' on stream 1 reads what 'fill' on the default stream "
                                    "may not have written yet")));
}

TEST_F(StreamOrderTest, MemoryThatNobodyHasIsAMistakeToTouch) {
  order_.launch("guess", kMain, {writes(kOther)});
  order_.launch("use", kMain, {reads(kBlock)});
  order_.free(kBlock);
  order_.launch("use again", kMain, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(),
              ElementsAre(HasSubstr("'guess' on the default stream touches"),
                          HasSubstr("'use again' on the default stream touches")));
}

TEST_F(StreamOrderTest, AnEventAfterTheWriteOrdersTheRead) {
  order_.launch("fill", kMain, {writes(kBlock)});
  let_wait(kSide, kMain);
  order_.launch("use", kSide, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
}

TEST_F(StreamOrderTest, AnEventBeforeTheWriteOrdersNothing) {
  order_.launch("before", kMain, {});
  const Clock early = order_.record(kMain);
  order_.launch("fill", kMain, {writes(kBlock)});
  order_.wait(kSide, early);
  order_.launch("use", kSide, {reads(kBlock)});
  EXPECT_EQ(order_.mistakes().size(), 1u);
}

TEST_F(StreamOrderTest, AnEventThatTheWrongStreamWaitsForOrdersNothing) {
  order_.launch("fill", kMain, {writes(kBlock)});
  let_wait(kThird, kMain);
  order_.launch("use", kSide, {reads(kBlock)});
  EXPECT_EQ(order_.mistakes().size(), 1u);
}

TEST_F(StreamOrderTest, OrderGoesOnFromStreamToStream) {
  order_.launch("fill", kMain, {writes(kBlock)});
  let_wait(kSide, kMain);
  let_wait(kThird, kSide);
  order_.launch("use", kThird, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
}

TEST_F(StreamOrderTest, AWriteBesideAReadIsAMistakeAndTwoReadsAreNone) {
  order_.launch("a", kMain, {reads(kBlock)});
  order_.launch("b", kSide, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
  order_.launch("c", kSide, {writes(kBlock)});
  EXPECT_THAT(order_.mistakes(), ElementsAre(HasSubstr("'a' on the default stream may not have "
                                                       "read yet")));
}

TEST_F(StreamOrderTest, BytesBesideEachOtherDoNotMeet) {
  order_.launch("left", kMain, {writes(kBlock, 64)});
  order_.launch("right", kSide, {writes(kBlock + 64, 64)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
  order_.launch("both", kThird, {reads(kBlock + 63, 2)});
  EXPECT_EQ(order_.mistakes().size(), 2u);
}

TEST_F(StreamOrderTest, WhatTheHostWaitedForComesBeforeWhatItGivesNext) {
  order_.launch("fill", kMain, {writes(kBlock)});
  order_.host_wait_for_stream("item()", kMain);
  order_.launch("use", kSide, {reads(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
  EXPECT_THAT(order_.steps().back().host_waits, ElementsAre("item()"));
}

TEST_F(StreamOrderTest, MemoryThatAnotherStreamMayStillUseIsNotToBeFreed) {
  order_.launch("fill", kMain, {writes(kBlock)});
  let_wait(kSide, kMain);
  order_.launch("copy", kSide, {reads(kBlock)});
  order_.free(kBlock);
  EXPECT_THAT(order_.mistakes(),
              ElementsAre(HasSubstr("memory of the default stream is freed while "
                                    "'copy' on stream 1 may still use it")));
}

TEST_F(StreamOrderTest, MemoryThatIsKeptForTheOtherStreamMayBeFreed) {
  order_.launch("copy", kSide, {reads(kBlock)});
  order_.keep_for(kBlock + 8, kSide);
  order_.free(kBlock);
  EXPECT_THAT(order_.mistakes(), IsEmpty());
}

TEST_F(StreamOrderTest, KeptForOneStreamIsNotKeptForAnother) {
  order_.launch("copy", kSide, {reads(kBlock)});
  order_.keep_for(kBlock, kThird);
  order_.free(kBlock);
  EXPECT_EQ(order_.mistakes().size(), 1u);
}

TEST_F(StreamOrderTest, MemoryMayBeFreedOnceItsStreamHasWaited) {
  order_.launch("copy", kSide, {reads(kBlock)});
  let_wait(kMain, kSide);
  order_.free(kBlock);
  EXPECT_THAT(order_.mistakes(), IsEmpty());
}

// A later read of the same bytes must not erase an earlier read on another stream.
TEST_F(StreamOrderTest, AnUnorderedReadIsNotForgotten) {
  order_.launch("copy", kSide, {reads(kBlock)});
  order_.launch("use", kMain, {reads(kBlock)});
  order_.free(kBlock);
  EXPECT_EQ(order_.mistakes().size(), 1u);
}

TEST_F(StreamOrderTest, NewMemoryMayStillBeInUseByWhatItsStreamWasGivenBefore) {
  order_.launch("last use", kMain, {writes(kBlock)});
  order_.free(kBlock);
  order_.allocate(kBlock, 256, kMain);
  order_.launch("copy", kSide, {writes(kBlock)});
  EXPECT_THAT(order_.mistakes(), ElementsAre(HasSubstr("what had this memory before")));
}

TEST_F(StreamOrderTest, NewMemoryIsAnybodysWhoWaitsForItsStream) {
  order_.launch("last use", kMain, {writes(kBlock)});
  order_.free(kBlock);
  order_.allocate(kBlock, 256, kMain);
  let_wait(kSide, kMain);
  order_.launch("copy", kSide, {writes(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
}

TEST_F(StreamOrderTest, MemoryTakenAnewHasNoPastOfOtherStreams) {
  order_.launch("fill", kMain, {writes(kBlock)});
  order_.free(kBlock);
  order_.allocate(kBlock, 256, kSide);
  order_.launch("fill", kSide, {writes(kBlock)});
  EXPECT_THAT(order_.mistakes(), IsEmpty());
  EXPECT_EQ(order_.bytes_in_use(), 256);
}

TEST_F(StreamOrderTest, StepsHoldWhatHappenedInThem) {
  order_.begin_step(7);
  order_.allocate(kOther, 64, kMain);
  order_.launch("fill", kMain, {writes(kOther)});
  let_wait(kSide, kMain);
  const StepRecord step = order_.steps().back();
  EXPECT_EQ(step.number, 7);
  EXPECT_EQ(step.num_launches, 1);
  EXPECT_EQ(step.num_allocated, 1);
  EXPECT_EQ(step.num_waits, 1);
  EXPECT_THAT(step.trace, ElementsAre("take 64 bytes of the default stream",
                                      "fill on the default stream", "wait on stream 1"));
}

}  // namespace
}  // namespace titan::recording::stream_order_test
