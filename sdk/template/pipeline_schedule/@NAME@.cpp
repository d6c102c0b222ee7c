// Pipeline schedule @FULL_NAME@. As generated, every rank runs all forwards and then all backwards,
// beginning with the last microbatch. Select it with [parallelism] pipeline_parallel_schedule = "@FULL_NAME@".
// Show it with `titan describe pipeline_schedule @FULL_NAME@ --ranks 4 --microbatches 8`.
#include <optional>
#include <string>

#include <titan/pipeline_schedule.h>
#include <titan/plugin.h>

namespace {

class @CLASS@ final : public titan::PipelineSchedule {
 public:
  explicit @CLASS@(titan::PipelineScheduleContext) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }

  // why this schedule cannot run `shape`; checked before the run starts
  std::optional<std::string> problem(const titan::PipelineShape& shape) const override {
    if (shape.stages_per_rank() == 1) return std::nullopt;
    return "needs exactly 1 stage per rank, but there are " + std::to_string(shape.stages_per_rank());
  }

  // one list of actions per rank; the core derives sends, receives and the rank of each stage from them
  titan::PipelineTable plan(const titan::PipelineShape& shape) const override {
    using Kind = titan::PipelineAction::Kind;
    titan::PipelineTable table(static_cast<size_t>(shape.num_ranks));
    for (int rank = 0; rank < shape.num_ranks; ++rank) {
      auto& actions = table[static_cast<size_t>(rank)];
      for (int microbatch = 0; microbatch < shape.num_microbatches; ++microbatch)
        actions.push_back({Kind::forward, rank, microbatch});
      for (int microbatch = shape.num_microbatches - 1; microbatch >= 0; --microbatch)
        actions.push_back({Kind::backward, rank, microbatch});
    }
    return table;
  }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "All forwards, then all backwards, the last microbatch first.");
}
