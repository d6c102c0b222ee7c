// Reads a pipeline's table from CSV text in the format of PyTorch's
// _dump_csv(format="compute_only"). Used by csv_schedule.cpp; fuzzed.
#pragma once

#include <string>
#include <string_view>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// One row per rank, one cell per action: <stage><F|B|I|W><microbatch>, or
/// (<stage>F<microbatch>;<stage>B<microbatch>)OVERLAP_F_B. An empty cell is a pause and is skipped.
/// Accepts spaces around cells, both kinds of line ends and empty lines after the last row.
///
/// Throws a data Error "NAME:line:cell: ..." for anything else, with the text of the cell. Does not
/// check whether the table can run.
PipelineTable parse_csv_table(std::string_view text, const std::string& name);

/// The number of rows, stages and microbatches.
PipelineShape shape_of(const PipelineTable& table);

}  // namespace titan::pipeline_schedules
