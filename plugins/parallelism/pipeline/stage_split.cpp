#include "stage_split.h"

#include <map>
#include <string>

#include <titan/error.h>

namespace titan::pipeline {
namespace {

/// Names that identify a layer: its own, and those of the modules below it as in parameter names.
std::map<std::string, size_t> places_by_name(ModelPart& part) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < part.layers().size(); ++i) {
    Layer& layer = part.layers()[i];
    layer.module->visit_modules(
        [&](const std::string& path, nn::Module&) {
          if (!path.empty()) places.emplace(path, i);
        },
        layer.parameter_prefix);
    places[layer.name] = i;
  }
  return places;
}

std::vector<LayerRange> split_as_named(ModelPart& part,
                                       const std::vector<std::vector<std::string>>& stages) {
  const std::map<std::string, size_t> places = places_by_name(part);
  std::vector<int> stage_of(part.layers().size(), -1);
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += "\n  " + text; };
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const std::string where = "stage " + std::to_string(stage);
    if (stages[stage].empty()) problem(where + " is empty");
    for (const std::string& name : stages[stage]) {
      const auto found = places.find(name);
      if (found == places.end()) {
        problem(where + " names '" + name + "', which the model does not have");
        continue;
      }
      int& chosen = stage_of[found->second];
      const std::string& layer = part.layers()[found->second].name;
      if (chosen >= 0 && chosen != static_cast<int>(stage))
        problem(where + " names '" + name + "' of layer '" + layer + "', which is in stage " +
                std::to_string(chosen) + " already; a layer cannot be cut");
      else
        chosen = static_cast<int>(stage);
    }
  }
  for (size_t i = 0; i < stage_of.size(); ++i) {
    if (stage_of[i] < 0) problem("no stage names layer '" + part.layers()[i].name + "'");
    if (i > 0 && stage_of[i] >= 0 && stage_of[i] < stage_of[i - 1])
      problem("layer '" + part.layers()[i].name + "' is in stage " + std::to_string(stage_of[i]) +
              ", before layer '" + part.layers()[i - 1].name + "' in stage " +
              std::to_string(stage_of[i - 1]));
  }
  TITAN_CHECK(problems.empty(), config,
              "parallelism.module_fqns_per_model_part does not fit the model:", problems);

  std::vector<LayerRange> ranges(stages.size());
  for (size_t i = stage_of.size(); i-- > 0;) {
    LayerRange& range = ranges[static_cast<size_t>(stage_of[i])];
    range.first = i;
    if (range.last == 0) range.last = i + 1;
  }
  return ranges;
}

}  // namespace

std::vector<LayerRange> split_by_weight(size_t num_layers, int num_stages, int64_t first_weight,
                                        int64_t last_weight) {
  if (num_stages == 1) return {{0, num_layers}};
  TITAN_CHECK(num_layers >= 2, config, "a model of ", num_layers, " layer cannot be cut into ",
              num_stages, " stages");
  const int64_t num_units = static_cast<int64_t>(num_layers) - 2 + first_weight + last_weight;
  TITAN_CHECK(num_stages <= num_units, config, "a pipeline of ", num_stages,
              " stages needs as many layers, but the model has ", num_layers - 2,
              " and its first and last weigh ", first_weight, " and ", last_weight,
              " more; lower parallelism.pipeline_parallel_degree or the stages per rank");
  const int64_t per_stage = num_units / num_stages, rest = num_units % num_stages;
  const auto check_weight = [&](int64_t weight, const char* key) {
    TITAN_CHECK(weight <= per_stage, config, "parallelism.", key, " = ", weight, " exceeds the ",
                per_stage, per_stage == 1 ? " layer" : " layers", " per stage of ", num_stages,
                " stages");
  };
  check_weight(first_weight, "pipeline_parallel_first_stage_less_layers");
  check_weight(last_weight, "pipeline_parallel_last_stage_less_layers");

  std::vector<LayerRange> ranges;
  size_t next = 0;
  for (int stage = 0; stage < num_stages; ++stage) {
    int64_t units = per_stage + (stage < rest ? 1 : 0);
    LayerRange range{next, next};
    if (stage == 0) units += 1 - first_weight;
    if (stage == num_stages - 1) units += 1 - last_weight;
    range.last = next + static_cast<size_t>(units);
    next = range.last;
    ranges.push_back(range);
  }
  TITAN_ASSERT(next == num_layers, next, " of ", num_layers, " layers assigned");
  return ranges;
}

std::vector<LayerRange> split_into_stages(ModelPart& part, int num_stages,
                                          const PipelineOptions& options) {
  if (options.modules_per_stage) {
    TITAN_CHECK(options.modules_per_stage->size() == static_cast<size_t>(num_stages), config,
                "parallelism.module_fqns_per_model_part names ", options.modules_per_stage->size(),
                " stages, but the pipeline has ", num_stages);
    return split_as_named(part, *options.modules_per_stage);
  }
  return split_by_weight(part.layers().size(), num_stages, options.first_stage_less_layers,
                         options.last_stage_less_layers);
}

}  // namespace titan::pipeline
