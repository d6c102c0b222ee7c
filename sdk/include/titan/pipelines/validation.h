// Proves that the table of a pipeline schedule runs: each stage on one rank, each action once, in
// an order without deadlock. Used by make_plan().
#pragma once

#include <string>
#include <vector>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// The errors of the table, one sentence each with rank and action; empty if it runs. After about
/// ten, a last sentence says that there are more. Deadlocks are checked only if there is no other
/// error. `shape` is valid for a pipeline.
TITAN_API std::vector<std::string> table_problems(const PipelineTable& table,
                                                  const PipelineShape& shape);

/// The rank of each stage. Requires a table without problems.
TITAN_API std::vector<int> ranks_of_stages(const PipelineTable& table, const PipelineShape& shape);

}  // namespace titan
