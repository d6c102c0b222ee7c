// Prints the plans of the pipeline schedules, for tests/referee/pipeline_schedule_referee.py.
//
//   pipeline_schedule_probe <plugins folder> < cases.json
//
// Standard input is a list of {"schedule", "ranks", "microbatches"} and optionally "stages",
// "options" and "costs" (a list of F, I and W). Standard output is a list with an answer for each:
// {"stages", "compute", "lowered", "makespan", "busy", "peak", "peak_until_input_grad"}, tables as
// CSV text, or {"kind", "error"} for a refusal.
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include <titan/error.h>
#include <titan/pipeline_schedule.h>
#include <titan/pipelines/analysis.h>
#include <titan/pipelines/table_csv.h>
#include <titan/value.h>

#include "core/pipeline/plan.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"

namespace {

using namespace titan;

Value answer(core::Registry& registry, const Value& test) {
  const std::string& name = test.at("schedule").as_string();
  const Value* options = test.find("options");
  const auto schedule =
      registry.create<PipelineSchedule>(name, options ? *options : Value::map(), {});
  PipelineShape shape{.num_ranks = static_cast<int>(test.at("ranks").as_integer()),
                      .num_microbatches = static_cast<int>(test.at("microbatches").as_integer())};
  const Value* stages = test.find("stages");
  shape.num_stages = stages ? static_cast<int>(stages->as_integer())
                            : schedule->default_num_stages(shape.num_ranks);
  ActionCosts costs;
  if (const Value* given = test.find("costs")) {
    const Value::List& times = given->as_list();
    costs = {.forward = times.at(0).as_number(),
             .input_grad = times.at(1).as_number(),
             .weight_grad = times.at(2).as_number()};
  }
  const PipelinePlan plan = core::make_plan(*schedule, name, shape);
  const PipelineAnalysis analysis = analyze(plan, costs);
  Value::List busy, peak, peak_until_input_grad;
  for (const RankUse& use : analysis.ranks) {
    busy.emplace_back(use.busy);
    peak.emplace_back(use.peak_activations);
    peak_until_input_grad.emplace_back(use.peak_until_input_grad);
  }
  return Value::map({{"stages", shape.num_stages},
                     {"compute", to_csv(compute_table(plan))},
                     {"lowered", to_csv(plan.actions)},
                     {"makespan", analysis.makespan},
                     {"busy", std::move(busy)},
                     {"peak", std::move(peak)},
                     {"peak_until_input_grad", std::move(peak_until_input_grad)}});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    TITAN_CHECK(argc == 2, config, "usage: pipeline_schedule_probe <plugins folder> < cases.json");
    const core::Catalog catalog(core::plugin_search_path({argv[1]}));
    core::Registry registry(catalog);
    const Value tests = parse_json(std::string(std::istreambuf_iterator<char>(std::cin), {}));
    Value::List answers;
    for (const Value& test : tests.as_list()) {
      try {
        answers.push_back(answer(registry, test));
      } catch (const Error& error) {
        answers.push_back(
            Value::map({{"kind", to_string(error.kind())}, {"error", error.message()}}));
      }
    }
    std::cout << to_json(answers) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
