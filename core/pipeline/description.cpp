// See description.h.
#include "core/pipeline/description.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>
#include <system_error>

#include <titan/error.h>
#include <titan/pipelines/table_csv.h>
#include <titan/program/text_table.h>
#include <titan/suggest.h>

#include "core/pipeline/plan.h"
#include "core/pipeline/timeline.h"

namespace titan::core {
namespace {

constexpr size_t kWidth = 120;

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

void write_file(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  TITAN_CHECK(out.good(), io, "cannot write ", file, ": ", std::generic_category().message(errno));
}

std::string headline(const std::string& name, const PipelineAnalysis& analysis) {
  const PipelineShape& shape = analysis.shape;
  const ActionCosts& costs = analysis.costs;
  return titan::detail::concat(name, ": ", shape.num_ranks, " ranks, ", shape.num_stages,
                               " stages, ", shape.num_microbatches, " microbatches; costs F ",
                               shown(costs.forward), ", I ", shown(costs.input_grad), ", W ",
                               shown(costs.weight_grad));
}

std::string stages_of(const PipelinePlan& plan, size_t rank) {
  std::string text;
  for (size_t stage = 0; stage < plan.rank_of_stage.size(); ++stage)
    if (plan.rank_of_stage[stage] == static_cast<int>(rank))
      text += (text.empty() ? "" : " ") + std::to_string(stage);
  return text;
}

std::string ranks_text(const PipelinePlan& plan, const PipelineAnalysis& analysis) {
  std::vector<TextRow> rows{
      {"rank", "stages", "busy", "bubble", "idle inside", "peak activations", "peak until I"}};
  for (size_t rank = 0; rank < analysis.ranks.size(); ++rank) {
    const RankUse& use = analysis.ranks[rank];
    rows.push_back({std::to_string(rank), stages_of(plan, rank), shown(use.busy),
                    percent(use.bubble), shown(use.inner_idle),
                    std::to_string(use.peak_activations),
                    std::to_string(use.peak_until_input_grad)});
  }
  return text_table(rows);
}

/// The value of `text` for an option; text that is no boolean, number or list stays text.
Value option_value(const Option& option, const std::string& text) {
  const bool is_plain = option.type == OptionType::boolean || option.type == OptionType::integer ||
                        option.type == OptionType::number || option.type == OptionType::list;
  if (!is_plain) return Value(text);
  try {
    return parse_json(text);
  } catch (const Error&) {
    return Value(text);
  }
}

}  // namespace

ActionCosts parse_costs(const std::string& text) {
  ActionCosts costs;
  int end = -1;
  const int found = std::sscanf(text.c_str(), "%lf,%lf,%lf%n", &costs.forward, &costs.input_grad,
                                &costs.weight_grad, &end);
  const bool is_one = found == 3 && end == static_cast<int>(text.size()) && costs.forward > 0 &&
                      costs.input_grad > 0 && costs.weight_grad > 0 && costs.forward < 1e9 &&
                      costs.input_grad < 1e9 && costs.weight_grad < 1e9;
  TITAN_CHECK(is_one, config,
              "--costs must be three numbers > 0 for F, I and W, such as 1,1,1, got '", text, "'");
  return costs;
}

void add_option(const Component& component, const std::string& text, Value& options) {
  const size_t equals = text.find('=');
  TITAN_CHECK(equals != std::string::npos, config, "--option must be NAME=VALUE, got '", text, "'");
  const std::string name = text.substr(0, equals);
  const Option* option = component.schema.find(name);
  if (!option) {
    std::vector<std::string> names;
    for (const Option& known : component.schema.options) names.push_back(known.name);
    const std::string hint = did_you_mean(name, names);
    fail(ErrorKind::config, "unknown option '", name, "' for ", component.kind, " '",
         component.name, "'", hint.empty() ? "" : "; ", hint);
  }
  const Value value = option_value(*option, text.substr(equals + 1));
  if (const auto problem = option->problem(value))
    fail(ErrorKind::config, "option '", name, "' of ", component.kind, " '", component.name, "' ",
         *problem);
  options[name] = value;
}

std::string describe_pipeline(Registry& registry, const PipelineRequest& request) {
  const auto schedule = registry.create<PipelineSchedule>(request.schedule, request.options, {});
  const PipelineShape shape{
      .num_ranks = request.num_ranks,
      .num_stages = request.num_stages.value_or(schedule->default_num_stages(request.num_ranks)),
      .num_microbatches = request.num_microbatches};
  const PipelinePlan plan = make_plan(*schedule, request.schedule, shape);
  const PipelineAnalysis analysis = analyze(plan, request.costs);
  const std::string title = headline(request.schedule, analysis);
  write_file(request.svg_file, timeline_svg(analysis, title));
  write_file(request.csv_file, to_csv(compute_table(plan)));
  write_file(request.lowered_file, to_csv(plan.actions));
  return title + "\n\n" + timeline_text(analysis, kWidth) + "\nstep " + shown(analysis.makespan) +
         ", mean bubble " + percent(analysis.mean_bubble()) + "\n\n" + ranks_text(plan, analysis);
}

}  // namespace titan::core
