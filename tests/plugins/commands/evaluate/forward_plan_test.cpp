#include "plugins/commands/evaluate/forward_plan.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

namespace titan::evaluation {
namespace {

using Ids = std::vector<int32_t>;

/// Contexts of lengths 1 to 9 and targets of 1 to 3, all ids distinct.
std::vector<Request> some_requests() {
  std::vector<Request> all;
  int32_t id = 0;
  for (size_t context = 1; context < 10; ++context)
    for (size_t target = 1; target < 4; ++target) {
      Request& request = all.emplace_back();
      for (size_t i = 0; i < context; ++i) request.context.push_back(id++);
      for (size_t i = 0; i < target; ++i) request.target.push_back(id++);
    }
  return all;
}

/// For each request, its scored tokens in order, each with the tokens before it that the cache held
/// then.
std::map<size_t, std::vector<std::pair<Ids, int32_t>>> asked_in(
    const std::vector<PlannedForward>& forwards) {
  std::map<size_t, std::vector<std::pair<Ids, int32_t>>> asked;
  std::map<int64_t, Ids> slots;
  for (const PlannedForward& forward : forwards) {
    if (forward.begins_batch) slots.clear();
    for (const SequencePiece& piece : forward.pieces) {
      Ids& slot = slots[piece.slot];
      EXPECT_EQ(static_cast<int64_t>(slot.size()), piece.start);
      EXPECT_LT(piece.slot, forward.num_slots);
      slot.insert(slot.end(), piece.ids.begin(), piece.ids.end());
      EXPECT_LE(static_cast<int64_t>(slot.size()), forward.capacity);
      for (const auto& one : piece.asked)
        asked[one.request].emplace_back(
            Ids(slot.begin(),
                slot.begin() + piece.start + static_cast<std::ptrdiff_t>(one.place) + 1),
            one.id);
    }
  }
  return asked;
}

TEST(ForwardPlan, AsksForEveryTokenBehindAllThatIsBeforeIt) {
  const auto requests = some_requests();
  for (const PlanLimits limits :
       {PlanLimits{}, PlanLimits{.tokens = 7}, PlanLimits{.tokens = 1},
        PlanLimits{.tokens = 20, .rows = 2}, PlanLimits{.tokens = 20, .rows = 1, .num_ranks = 3}}) {
    const auto plan = plan_forwards(requests, limits);
    ASSERT_EQ(plan.size(), static_cast<size_t>(limits.num_ranks));
    std::set<size_t> seen;
    for (const auto& rank : plan) {
      EXPECT_EQ(rank.size(), plan.front().size());
      for (const PlannedForward& forward : rank) {
        EXPECT_LE(forward.num_tokens(), limits.tokens);
        EXPECT_LE(forward.num_rows(), limits.rows);
      }
      for (const auto& [number, asked] : asked_in(rank)) {
        EXPECT_TRUE(seen.insert(number).second);
        const Request& request = requests[number];
        ASSERT_EQ(asked.size(), request.target.size());
        Ids before = request.context;
        for (size_t i = 0; i < asked.size(); ++i) {
          EXPECT_EQ(asked[i].first, before);
          EXPECT_EQ(asked[i].second, request.target[i]);
          before.push_back(request.target[i]);
        }
      }
    }
    EXPECT_EQ(seen.size(), requests.size());
  }
}

TEST(ForwardPlan, RunsEqualSequencesOnce) {
  std::vector<Request> requests(4, Request{.context = {1, 2, 3}});
  for (size_t i = 0; i < requests.size(); ++i) requests[i].target = {static_cast<int32_t>(10 + i)};
  requests.push_back({.context = {1, 2}, .target = {3, 20}});  // differs only in where it is split
  const auto plan = plan_forwards(requests, {});
  ASSERT_EQ(plan[0].size(), 1);
  EXPECT_EQ(plan[0][0].num_tokens(), 3);
  EXPECT_EQ(plan[0][0].num_rows(), 2);
}

TEST(ForwardPlan, SharesTheWorkAndFillsUp) {
  const std::vector<Request> requests(3, Request{.context = {1, 2, 3}, .target = {4, 5}});
  std::vector<Request> distinct = requests;
  for (size_t i = 0; i < distinct.size(); ++i) distinct[i].context[0] = static_cast<int32_t>(i);
  const auto plan = plan_forwards(distinct, {.tokens = 4, .num_ranks = 2});
  ASSERT_EQ(plan[0].size(), 2);
  ASSERT_EQ(plan[1].size(), 2);
  EXPECT_EQ(plan[0][0].num_rows() + plan[0][1].num_rows() + plan[1][0].num_rows(), 6);
  EXPECT_EQ(plan[1][1].num_rows(), 0);
  EXPECT_EQ(plan[1][1].num_tokens(), 1);
}

}  // namespace
}  // namespace titan::evaluation
