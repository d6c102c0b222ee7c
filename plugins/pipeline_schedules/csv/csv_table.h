// Reads a pipeline's table from the text of a CSV file as PyTorch's
// _dump_csv(format="compute_only") writes it. Used by csv_schedule.cpp; fuzzed.
#pragma once

#include <string>
#include <string_view>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

/// One row per rank, one cell per action: <stage><F|B|I|W><microbatch>, or
/// (<stage>F<microbatch>;<stage>B<microbatch>)OVERLAP_F_B. An empty cell is a pause and left out.
/// Spaces around cells, either line end and empty lines behind the last row are taken.
///
/// Throws a data Error "NAME:line:cell: ..." for anything else, with the text of the cell. Whether
/// the table can run is not looked at.
PipelineTable parse_csv_table(std::string_view text, const std::string& name);

/// Rows, the highest stage and the highest microbatch.
PipelineShape shape_of(const PipelineTable& table);

}  // namespace titan::pipeline_schedules
