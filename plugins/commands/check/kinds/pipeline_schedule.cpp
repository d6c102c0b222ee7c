// Tests of pipeline schedules.
#include <set>
#include <tuple>

#include <titan/pipeline_schedule.h>
#include <titan/pipelines/validation.h>

#include "kit/jobs.h"

namespace titan::conformance::pipeline_schedule_kind {
namespace {

/// Shapes of 1 to 4 ranks; those that the schedule accepts.
std::vector<PipelineShape> accepted_shapes(const PipelineSchedule& schedule) {
  std::vector<PipelineShape> shapes;
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int per_rank = 1; per_rank <= 3; ++per_rank)
      for (const int microbatches : {1, 2, 3, 4, 7, 8, 16}) {
        const PipelineShape shape{ranks, ranks * per_rank, microbatches};
        if (!schedule.problem(shape)) shapes.push_back(shape);
      }
  return shapes;
}

std::string text_of(const PipelineShape& shape) {
  return titan::detail::concat(shape.num_ranks, " ranks, ", shape.num_stages, " stages, ",
                               shape.num_microbatches, " microbatches");
}

using Kind = PipelineAction::Kind;

bool is_compute(Kind kind) {
  return kind == Kind::forward || kind == Kind::backward || kind == Kind::input_grad ||
         kind == Kind::weight_grad;
}

void accepts_shapes(TestContext& test) {
  const auto schedule = test.make<PipelineSchedule>({});
  for (const int ranks : {2, 4}) {
    const int stages = schedule->default_num_stages(ranks);
    test.expect(stages > 0 && stages % ranks == 0, "default_num_stages(", ranks, ") is ", stages,
                ", which is no multiple of the ranks");
    const auto problem = schedule->problem({ranks, stages, 4 * ranks});
    test.expect(!problem, "it refuses ", ranks, " ranks with its own default of ", stages,
                " stages and ", 4 * ranks, " microbatches: ", problem.value_or(""));
  }
}

void reasons(TestContext& test) {
  const auto schedule = test.make<PipelineSchedule>({});
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (int per_rank = 1; per_rank <= 3; ++per_rank)
      for (const int microbatches : {1, 2, 3, 8}) {
        const PipelineShape shape{ranks, ranks * per_rank, microbatches};
        const auto problem = schedule->problem(shape);
        test.expect(!problem || !problem->empty(), "it refuses ", text_of(shape),
                    " without a reason");
      }
}

void each_once(TestContext& test) {
  const auto schedule = test.make<PipelineSchedule>({});
  size_t num_shapes = 0;
  for (const PipelineShape& shape : accepted_shapes(*schedule)) {
    ++num_shapes;
    const PipelineTable table = schedule->plan(shape);
    test.expect(table.size() == static_cast<size_t>(shape.num_ranks), "plan() of ", text_of(shape),
                " has ", table.size(), " lists");
    std::set<std::tuple<Kind, int, int>> seen;
    for (const auto& actions : table)
      for (const PipelineAction& action : actions) {
        test.expect(is_compute(action.kind), "plan() of ", text_of(shape), " has the action ",
                    to_string(action), ", which the core adds");
        test.expect(seen.insert({action.kind, action.stage, action.microbatch}).second,
                    "plan() of ", text_of(shape), " has ", to_string(action), " twice");
      }
    for (int stage = 0; stage < shape.num_stages; ++stage)
      for (int m = 0; m < shape.num_microbatches; ++m) {
        const bool has_whole = seen.contains({Kind::backward, stage, m});
        const bool has_parts = seen.contains({Kind::input_grad, stage, m}) &&
                               seen.contains({Kind::weight_grad, stage, m});
        test.expect(seen.contains({Kind::forward, stage, m}), "plan() of ", text_of(shape),
                    " has no forward of stage ", stage, " for microbatch ", m);
        test.expect(has_whole != has_parts, "plan() of ", text_of(shape),
                    " has no backward, or "
                    "two, of stage ",
                    stage, " for microbatch ", m);
      }
  }
  test.expect(num_shapes > 0, "it accepts none of 84 shapes of 1 to 4 ranks");
}

void runs(TestContext& test) {
  const auto schedule = test.make<PipelineSchedule>({});
  size_t num_shapes = 0;
  for (const PipelineShape& shape : accepted_shapes(*schedule)) {
    ++num_shapes;
    const auto problems = table_problems(schedule->plan(shape), shape);
    test.expect(problems.empty(), "the table of ", text_of(shape),
                " cannot run: ", problems.empty() ? "" : problems.front());
  }
  test.expect(num_shapes > 0, "it accepts none of 84 shapes of 1 to 4 ranks");
}

void same_table(TestContext& test) {
  const auto schedule = test.make<PipelineSchedule>({}), other = test.make<PipelineSchedule>({});
  for (const PipelineShape& shape : accepted_shapes(*schedule)) {
    const PipelineTable table = schedule->plan(shape);
    test.expect(table == schedule->plan(shape) && table == other->plan(shape),
                "two calls of plan() for ", text_of(shape), " give two tables");
  }
}

Job pipeline_job(TestContext& test, const std::string& name) {
  const auto schedule = test.make<PipelineSchedule>({});
  const int stages = schedule->default_num_stages(2);
  Job job = job_with(test, name).exact().saves();
  job.set("model.n_layers", 2 * stages).set("training.global_batch_size", 8);
  job.set("training.local_batch_size", 8).set("parallelism.pipeline_parallel_microbatch_size", 1);
  return job;
}

void trains(TestContext& test) {
  Job job = pipeline_job(test, "two");
  const JobRun two = job.ranks(2).set("parallelism.pipeline_parallel_degree", 2).run();
  Job alone = pipeline_job(test, "one").without("parallelism").without("pipeline_schedule");
  measure_runs(test, two, alone.run());
}

}  // namespace
}  // namespace titan::conformance::pipeline_schedule_kind

namespace titan::conformance {

std::vector<Test> pipeline_schedule_tests() {
  using namespace pipeline_schedule_kind;
  constexpr const char* kKind = "pipeline_schedule";
  return {
      {kKind, "accepts_shapes",
       "It accepts 2 and 4 ranks with its default number of stages, a multiple of the ranks.",
       accepts_shapes},
      {kKind, "reasons", "problem() gives a reason for each shape that it refuses.", reasons},
      {kKind, "each_once",
       "The table of each accepted shape has each forward and each backward exactly once, and no "
       "sends.",
       each_once},
      {kKind, "runs",
       "The table of each accepted shape runs: a stage is on one rank, inputs come first, no rank "
       "waits for ever.",
       runs},
      {kKind, "deterministic", "Two calls and two objects give the same table.", same_table},
      {kKind, "trains", "A float64 run over 2 ranks gives the losses and weights of one rank.",
       trains, "", 1e-9},
  };
}

}  // namespace titan::conformance
