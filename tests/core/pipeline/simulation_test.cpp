// Simulates plans under blocking transports, and damaged tables. The simulation is independent of
// the core's and decides which plans can run.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/pipelines/table_csv.h>

#include "core/pipeline/plan.h"
#include "tests/core/pipeline/pipeline_fixture.h"

namespace titan::core {
namespace {

using Kind = PipelineAction::Kind;
using Done = std::set<std::tuple<Kind, int, int>>;

/// Whether all ranks finish when a send blocks until the other rank receives it, and an action
/// needs values that its own rank has computed or received. A receive matches the current send of
/// the neighbour, which must be the same transfer.
bool runs_with_rendezvous(const PipelinePlan& plan) {
  const int last_stage = plan.shape.num_stages - 1;
  const auto rank_of = [&](int stage) { return plan.rank_of_stage.at(static_cast<size_t>(stage)); };
  std::vector<size_t> next(plan.actions.size(), 0);
  std::vector<Done> done(plan.actions.size());
  const auto is_sent_by = [](Kind kind) {
    return kind == Kind::receive_input ? Kind::send_output : Kind::send_grad;
  };
  const auto has = [&](size_t rank, Kind kind, int stage, int microbatch) {
    return done[rank].contains({kind, stage, microbatch});
  };
  const auto has_gradient = [&](size_t rank, int stage, int microbatch) {
    return has(rank, Kind::backward, stage, microbatch) ||
           has(rank, Kind::input_grad, stage, microbatch);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < plan.actions.size(); ++rank) {
      if (next[rank] == plan.actions[rank].size()) continue;
      const PipelineAction& action = plan.actions[rank][next[rank]];
      const int stage = action.stage, microbatch = action.microbatch;
      bool can = false;
      switch (action.kind) {
        case Kind::forward:
          can = stage == 0 || has(rank, Kind::receive_input, stage, microbatch) ||
                (rank_of(stage - 1) == static_cast<int>(rank) &&
                 has(rank, Kind::forward, stage - 1, microbatch));
          break;
        case Kind::backward:
        case Kind::input_grad:
          can = has(rank, Kind::forward, stage, microbatch) &&
                (stage == last_stage || has(rank, Kind::receive_grad, stage, microbatch) ||
                 (rank_of(stage + 1) == static_cast<int>(rank) &&
                  has_gradient(rank, stage + 1, microbatch)));
          break;
        case Kind::weight_grad:
          can = has(rank, Kind::input_grad, stage, microbatch);
          break;
        case Kind::send_output:
        case Kind::send_grad:
          break;  // completes when the receiver reaches the matching receive
        case Kind::receive_input:
        case Kind::receive_grad: {
          const int sender_stage = stage + (action.kind == Kind::receive_input ? -1 : 1);
          const auto sender = static_cast<size_t>(rank_of(sender_stage));
          if (sender == rank || next[sender] == plan.actions[sender].size()) break;
          const PipelineAction& offered = plan.actions[sender][next[sender]];
          can = offered.kind == is_sent_by(action.kind) && offered.stage == sender_stage &&
                offered.microbatch == microbatch;
          if (can) ++next[sender];
          break;
        }
      }
      if (!can) continue;
      done[rank].insert({action.kind, stage, microbatch});
      ++next[rank];
      moved = true;
    }
  }
  for (size_t rank = 0; rank < plan.actions.size(); ++rank)
    if (next[rank] != plan.actions[rank].size()) return false;
  return true;
}

/// Whether every stage does everything exactly once on a single rank, and all lists can finish when
/// each action waits for its inputs. Sorts the actions, then runs the table repeatedly until
/// nothing changes.
bool is_sound(const PipelineTable& table, const PipelineShape& shape) {
  std::map<std::pair<int, int>, std::string> kinds;  // by stage and microbatch
  std::map<int, std::set<size_t>> ranks;
  for (size_t rank = 0; rank < table.size(); ++rank) {
    for (const PipelineAction& action : table[rank]) {
      if (action.stage < 0 || action.stage >= shape.num_stages || action.microbatch < 0 ||
          action.microbatch >= shape.num_microbatches)
        return false;
      kinds[{action.stage, action.microbatch}] +=
          to_string(PipelineAction{action.kind, 0, 0}).at(1);
      ranks[action.stage].insert(rank);
    }
  }
  if (kinds.size() !=
      static_cast<size_t>(shape.num_stages) * static_cast<size_t>(shape.num_microbatches))
    return false;
  for (auto& [cell, text] : kinds) {
    std::sort(text.begin(), text.end());
    if (text != "BF" && text != "FIW") return false;
  }
  std::map<size_t, int> stages_of_rank;
  for (const auto& [stage, holders] : ranks) {
    if (holders.size() != 1) return false;
    ++stages_of_rank[*holders.begin()];
  }
  for (const auto& [rank, count] : stages_of_rank)
    if (count != shape.stages_per_rank()) return false;

  std::vector<size_t> next(table.size(), 0);
  Done done;
  size_t left = 0;
  for (const auto& list : table) left += list.size();
  for (size_t before = left + 1; left > 0 && left < before;) {
    before = left;
    for (size_t rank = 0; rank < table.size(); ++rank) {
      if (next[rank] == table[rank].size()) continue;
      const size_t count = table[rank][next[rank]].overlaps_next ? 2 : 1;
      bool can = true;
      for (size_t i = next[rank]; i < next[rank] + count; ++i) {
        const auto [kind, stage, microbatch, overlaps_next] = table[rank][i];
        if (kind == Kind::forward)
          can = can && (stage == 0 || done.contains({Kind::forward, stage - 1, microbatch}));
        else if (kind == Kind::weight_grad)
          can = can && done.contains({Kind::input_grad, stage, microbatch});
        else
          can = can && done.contains({Kind::forward, stage, microbatch}) &&
                (stage + 1 == shape.num_stages ||
                 done.contains({Kind::input_grad, stage + 1, microbatch}) ||
                 done.contains({Kind::backward, stage + 1, microbatch}));
      }
      if (!can) continue;
      for (size_t i = 0; i < count; ++i, --left) {
        const PipelineAction& action = table[rank][next[rank]++];
        done.insert({action.kind, action.stage, action.microbatch});
      }
    }
  }
  return left == 0;
}

TEST(PipelineSimulation, EveryScheduleRunsRandomShapesOverBlockingTransports) {
  std::mt19937 random(20260107);
  int num_actions = 0;
  for (const NamedSchedule& known : all_schedules()) {
    for (int i = 0; i < 40; ++i) {
      const PipelineShape shape = random_shape(*known.schedule, random);
      const PipelinePlan plan = make_plan(*known.schedule, known.name, shape);
      EXPECT_TRUE(is_sound(compute_table(plan), shape)) << known.name;
      EXPECT_TRUE(runs_with_rendezvous(plan)) << known.name << " " << shape.num_ranks << " "
                                              << shape.num_stages << " " << shape.num_microbatches;
      for (const auto& list : plan.actions) num_actions += static_cast<int>(list.size());
    }
  }
  EXPECT_GT(num_actions, 20000);
}

TEST(PipelineSimulation, TheSimulationSeesALockup) {
  PipelinePlan plan = make_plan(*schedule_named("1F1B"), "1F1B", {2, 2, 2});
  ASSERT_TRUE(runs_with_rendezvous(plan));
  // the last rank waits for the second input before it has sent the first gradient
  auto& list = plan.actions[1];
  const auto receive =
      std::find(list.begin(), list.end(), PipelineAction{Kind::receive_input, 1, 1});
  const auto send = std::find(list.begin(), list.end(), PipelineAction{Kind::send_grad, 1, 0});
  ASSERT_NE(receive, list.end());
  ASSERT_NE(send, list.end());
  std::iter_swap(receive, send);
  EXPECT_FALSE(runs_with_rendezvous(plan));
}

/// Makes one random change. False when the table stayed the same.
bool damage(PipelineTable& table, const PipelineShape& shape, std::mt19937& random) {
  const PipelineTable before = table;
  const auto below = [&](size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  };
  auto& list = table[below(table.size())];
  if (list.empty()) return false;
  const size_t at = below(list.size());
  const auto place = list.begin() + static_cast<ptrdiff_t>(at);
  switch (below(8)) {
    case 0:
      list.erase(place);
      break;
    case 1:
      list.insert(place, *place);
      break;
    case 2:
      std::swap(list[at], list[below(list.size())]);
      break;
    case 3: {
      const PipelineAction moved = *place;
      list.erase(place);
      auto& other = table[below(table.size())];
      other.insert(other.begin() + static_cast<ptrdiff_t>(below(other.size() + 1)), moved);
      break;
    }
    case 4:
      place->stage = static_cast<int>(below(static_cast<size_t>(shape.num_stages) + 1));
      break;
    case 5:
      place->microbatch = static_cast<int>(below(static_cast<size_t>(shape.num_microbatches) + 1));
      break;
    case 6:
      place->kind = static_cast<Kind>(below(4));
      break;
    default:
      if (at + 1 < list.size()) std::swap(list[at], list[at + 1]);
  }
  // pairs have their own rules, which other tests check
  for (auto& each : table)
    for (PipelineAction& action : each) action.overlaps_next = false;
  return table != before;
}

TEST(PipelineSimulation, DamagedTablesAreTakenExactlyWhenTheyStillRun) {
  std::mt19937 random(20260108);
  int num_taken = 0, num_refused = 0, num_stuck = 0;
  for (const NamedSchedule& known : all_schedules()) {
    for (int i = 0; i < 300; ++i) {
      PipelineShape shape = random_shape(*known.schedule, random);
      while (shape.num_ranks > 4 || shape.num_microbatches > 8)
        shape = random_shape(*known.schedule, random);
      PipelineTable table = known.schedule->plan(shape);
      const size_t num_changes = 1 + random() % 2;
      bool changed = false;
      for (size_t change = 0; change < num_changes; ++change)
        changed = damage(table, shape, random) || changed;
      if (!changed) continue;
      try {
        const PipelinePlan plan = make_plan(WrittenSchedule(table), "damaged", shape);
        ++num_taken;
        EXPECT_TRUE(is_sound(table, shape)) << to_csv(table);
        EXPECT_TRUE(runs_with_rendezvous(plan)) << to_csv(table);
      } catch (const Error& error) {
        ++num_refused;
        if (error.message().find("waits for ever") != std::string::npos) ++num_stuck;
        EXPECT_FALSE(is_sound(table, shape)) << error.message() << "\n" << to_csv(table);
      }
    }
  }
  EXPECT_GT(num_taken, 100);
  EXPECT_GT(num_refused, 1000);
  EXPECT_GT(num_stuck, 50);
}

}  // namespace
}  // namespace titan::core
