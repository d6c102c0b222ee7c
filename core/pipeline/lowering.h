// Adds to the table of a pipeline what is sent and received. Used by make_plan().
#pragma once

#include <vector>

#include <titan/pipeline_schedule.h>

namespace titan::core {

/// The lists of `table`, which runs (see validation.h), with SEND and RECV.
///
/// Each send stands right behind the action that made it (behind the pair, when two overlap), and
/// its receive is put at that moment at the end of what the other rank has done so far. So all
/// transfers of all ranks are in one order, and transports whose send blocks until it is received
/// cannot lock up. Neighbouring stages of one rank send nothing. The order is that of PyTorch's
/// _add_send_recv.
PipelineTable with_transfers(const PipelineTable& table, const std::vector<int>& rank_of_stage,
                             const PipelineShape& shape);

}  // namespace titan::core
