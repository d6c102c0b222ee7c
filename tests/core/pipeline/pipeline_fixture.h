// Shared helpers of the pipeline tests: every schedule by name, shapes that each can run, and
// tables written as text.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <titan/pipeline_schedule.h>

#include "plugins/pipeline_schedules/csv/csv_table.h"
#include "plugins/pipeline_schedules/looped/gpipe.h"
#include "plugins/pipeline_schedules/looped/interleaved.h"
#include "plugins/pipeline_schedules/looped/looped_bfs.h"
#include "plugins/pipeline_schedules/looped/one_forward_one_backward.h"
#include "plugins/pipeline_schedules/v_shaped/dual_pipe_v.h"
#include "plugins/pipeline_schedules/v_shaped/zbv_zero_bubble.h"

namespace titan::core {

struct NamedSchedule {
  std::string name;
  std::shared_ptr<const PipelineSchedule> schedule;
};

/// The schedules that need no file.
inline std::vector<NamedSchedule> all_schedules() {
  namespace schedules = titan::pipeline_schedules;
  const PipelineScheduleContext context;
  return {{"GPipe", std::make_shared<schedules::GPipe>(context)},
          {"1F1B", std::make_shared<schedules::OneForwardOneBackward>(context)},
          {"Interleaved1F1B", std::make_shared<schedules::Interleaved1F1B>(context)},
          {"LoopedBFS", std::make_shared<schedules::LoopedBfs>(context)},
          {"InterleavedZeroBubble", std::make_shared<schedules::InterleavedZeroBubble>(context)},
          {"ZBVZeroBubble", std::make_shared<schedules::ZbvZeroBubble>(context)},
          {"DualPipeV", std::make_shared<schedules::DualPipeV>(context)}};
}

inline std::shared_ptr<const PipelineSchedule> schedule_named(const std::string& name) {
  for (const NamedSchedule& known : all_schedules())
    if (known.name == name) return known.schedule;
  return nullptr;
}

/// A shape that the schedule can run, of at most 8 ranks.
inline PipelineShape random_shape(const PipelineSchedule& schedule, std::mt19937& random) {
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (;;) {
    const int ranks = between(1, 8);
    const PipelineShape shape{ranks, ranks * between(1, 4), between(1, 24)};
    if (!schedule.problem(shape)) return shape;
  }
}

/// A schedule that returns the table of a test for any shape.
class WrittenSchedule final : public PipelineSchedule {
 public:
  explicit WrittenSchedule(PipelineTable table) : table_(std::move(table)) {}
  explicit WrittenSchedule(const std::string& text)
      : WrittenSchedule(titan::pipeline_schedules::parse_csv_table(text, "test")) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }
  std::optional<std::string> problem(const PipelineShape&) const override { return std::nullopt; }
  PipelineTable plan(const PipelineShape&) const override { return table_; }

 private:
  PipelineTable table_;
};

}  // namespace titan::core
