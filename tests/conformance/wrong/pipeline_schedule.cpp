// Pipeline schedules with one defect each, for the conformance kit. Each is written from the one
// sentence of its test.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include <titan/pipeline_schedule.h>
#include <titan/plugin.h>

namespace {

using titan::PipelineShape;
using titan::PipelineTable;
using Kind = titan::PipelineAction::Kind;

bool is_odd(const PipelineShape& shape) {
  return shape.num_microbatches >= 3 && shape.num_microbatches % 2 == 1;
}

/// Correct: all forwards, then all backwards.
class AllForwards : public titan::PipelineSchedule {
 public:
  explicit AllForwards(titan::PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }
  std::optional<std::string> problem(const PipelineShape& shape) const override {
    if (shape.stages_per_rank() == 1) return std::nullopt;
    return "needs exactly 1 stage per rank, but there are " +
           std::to_string(shape.stages_per_rank());
  }
  PipelineTable plan(const PipelineShape& shape) const override {
    PipelineTable table(static_cast<size_t>(shape.num_ranks));
    for (int rank = 0; rank < shape.num_ranks; ++rank) {
      auto& actions = table[static_cast<size_t>(rank)];
      for (int i = 0; i < shape.num_microbatches; ++i) actions.push_back({Kind::forward, rank, i});
      for (int i = shape.num_microbatches - 1; i >= 0; --i)
        actions.push_back({Kind::backward, rank, i});
    }
    return table;
  }
};

class Empty final : public titan::PipelineSchedule {
 public:
  explicit Empty(titan::PipelineScheduleContext) {}
  int default_num_stages(int) const override { return 0; }
  std::optional<std::string> problem(const PipelineShape&) const override { return {}; }
  PipelineTable plan(const PipelineShape&) const override { return {}; }
};

/// Refuses 4 ranks.
class AcceptsShapes final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  std::optional<std::string> problem(const PipelineShape& shape) const override {
    if (shape.num_ranks == 4)
      return "needs fewer than 4 ranks, but there are " + std::to_string(shape.num_ranks);
    return AllForwards::problem(shape);
  }
};

/// The default number of stages is no multiple of the ranks.
class AcceptsShapesNoMultiple final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  int default_num_stages(int num_ranks) const override { return num_ranks + 1; }
};

/// Refuses a shape without a reason.
class Reasons final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  std::optional<std::string> problem(const PipelineShape& shape) const override {
    return AllForwards::problem(shape) ? std::optional<std::string>("") : std::nullopt;
  }
};

/// Leaves out the last microbatch of an odd number.
class EachOnce final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  PipelineTable plan(const PipelineShape& shape) const override {
    PipelineTable table = AllForwards::plan(shape);
    if (is_odd(shape))
      for (auto& actions : table)
        std::erase_if(actions, [&](const titan::PipelineAction& action) {
          return action.microbatch == shape.num_microbatches - 1;
        });
    return table;
  }
};

/// Lists the sends of outputs.
class EachOnceSends final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  PipelineTable plan(const PipelineShape& shape) const override {
    PipelineTable table = AllForwards::plan(shape);
    if (is_odd(shape) && shape.num_ranks > 1)
      table[0].insert(table[0].begin() + 1, {Kind::send_output, 0, 0});
    return table;
  }
};

/// Rank 0 waits for a gradient before it has run the forward: nobody can send it.
class Runs final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  PipelineTable plan(const PipelineShape& shape) const override {
    PipelineTable table = AllForwards::plan(shape);
    if (is_odd(shape)) std::reverse(table[0].begin(), table[0].end());
    return table;
  }
};

/// The order of the backwards changes from call to call.
class Deterministic final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  PipelineTable plan(const PipelineShape& shape) const override {
    static int calls = 0;
    PipelineTable table = AllForwards::plan(shape);
    if (++calls % 2 == 0)
      for (auto& actions : table)
        std::reverse(actions.begin() + shape.num_microbatches, actions.end());
    return table;
  }
};

/// The table of a launched process depends on its rank, so the ranks follow different tables.
class Trains final : public AllForwards {
 public:
  using AllForwards::AllForwards;
  PipelineTable plan(const PipelineShape& shape) const override {
    PipelineTable table = AllForwards::plan(shape);
    const char* rank = std::getenv("RANK");
    if (rank && std::string(rank) != "0")
      for (auto& actions : table)
        std::reverse(actions.begin() + shape.num_microbatches, actions.end());
    return table;
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<Empty>("wrong/empty", "Does nothing.");
  plugin.add<AllForwards>("wrong/right", "Correct.");
  plugin.add<AcceptsShapes>("wrong/accepts_shapes", "Refuses 4 ranks.");
  plugin.add<AcceptsShapesNoMultiple>("wrong/accepts_shapes.multiple",
                                      "Stages that no ranks divide.");
  plugin.add<Reasons>("wrong/reasons", "Refuses without a reason.");
  plugin.add<EachOnce>("wrong/each_once", "Leaves out a microbatch.");
  plugin.add<EachOnceSends>("wrong/each_once.sends", "Lists sends.");
  plugin.add<Runs>("wrong/runs", "Has a deadlock.");
  plugin.add<Deterministic>("wrong/deterministic", "Changes from call to call.");
  plugin.add<Trains>("wrong/trains", "Differs between ranks.");
}
