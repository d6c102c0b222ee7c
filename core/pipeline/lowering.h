// Adds sends and receives to the table of a pipeline. Used by make_plan().
#pragma once

#include <vector>

#include <titan/pipeline_schedule.h>

namespace titan::core {

/// The lists of `table` with SEND and RECV added. `table` must have passed validation.h.
///
/// Each send follows directly after the action that produced its tensor (after the pair, when two
/// overlap). At that moment its receive is appended to the list of the other rank. So all transfers
/// of all ranks are in one order, and transports whose send blocks until it is received cannot
/// deadlock. Neighbouring stages of one rank send nothing. The order is that of PyTorch's
/// _add_send_recv.
PipelineTable with_transfers(const PipelineTable& table, const std::vector<int>& rank_of_stage,
                             const PipelineShape& shape);

}  // namespace titan::core
