// Proves that the table of a pipeline schedule runs: every stage of one rank, everything once, in
// an order in which nobody waits for ever. Used by make_plan().
#pragma once

#include <string>
#include <vector>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// What is wrong with the table, one sentence each that names rank and action; empty when it runs.
/// About ten at most, then a last one says that there are more. Whether it can run to its end is
/// looked at when nothing else is wrong. `shape` is one that a pipeline can have.
TITAN_API std::vector<std::string> table_problems(const PipelineTable& table,
                                                  const PipelineShape& shape);

/// Of a table without problems.
TITAN_API std::vector<int> ranks_of_stages(const PipelineTable& table, const PipelineShape& shape);

}  // namespace titan
