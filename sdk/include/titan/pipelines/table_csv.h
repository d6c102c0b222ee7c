// Converts a pipeline's table to PyTorch's CSV format. Used by `titan describe pipeline_schedule`
// and to compare the ranks of a run; the plugin `csv` reads the format.
#pragma once

#include <string>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// One row per rank, one cell per action, pairs as (0F3;3B1)OVERLAP_F_B, no pauses. With SEND and
/// RECV it is the format "compute_comms".
TITAN_API std::string to_csv(const PipelineTable& table);

/// The table of the schedule: the plan's table without SEND and RECV.
TITAN_API PipelineTable compute_table(const PipelinePlan& plan);

}  // namespace titan
