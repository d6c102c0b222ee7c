// The text of `titan describe pipeline_schedule NAME --ranks ...`: shape, timeline and bubbles of a
// schedule. Used by core/commands/describe.cpp.
#pragma once

#include <optional>
#include <string>

#include <titan/pipelines/analysis.h>
#include <titan/value.h>

#include "core/plugin/registry.h"

namespace titan::core {

/// The arguments of the command. A file is written if its name is set.
struct PipelineRequest {
  std::string schedule;
  Value options = Value::map();  ///< of the schedule
  int num_ranks = 0;
  int num_microbatches = 0;
  std::optional<int> num_stages;  ///< unset: the schedule's default
  ActionCosts costs;
  std::string svg_file, csv_file, lowered_file;  ///< empty: none
};

/// "F,I,W": three numbers > 0. Throws a config Error otherwise.
ActionCosts parse_costs(const std::string& text);

/// Parses "name=value", an option of `component`, and puts it into `options`. Throws a config Error
/// for an unknown name or an invalid value.
void add_option(const Component& component, const std::string& text, Value& options);

/// Shape, timeline, and for each rank its bubble and its activations. Writes the files of the
/// request: drawing, table, and table with sends and receives. Throws as make_plan(), and an io
/// Error.
std::string describe_pipeline(Registry& registry, const PipelineRequest& request);

}  // namespace titan::core
