// Registers the pipeline schedule `csv`.
#include <titan/plugin.h>

#include "csv_schedule.h"

using titan::pipeline_schedules::CsvSchedule;
using titan::pipeline_schedules::CsvScheduleOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<CsvSchedule>("csv", "A table from a file, in PyTorch's compute-only format.")
      .option("file", &CsvScheduleOptions::file,
              "One row per rank, cells such as 2F0, 2B0, 2I0, 2W0 or (0F3;3B1)OVERLAP_F_B; "
              "required")
      .fed_by("parallelism.pipeline_parallel_schedule_csv",
              [](const titan::Value& core, const titan::JobView&) {
                return core == titan::Value("") ? titan::Value() : core;
              });
}
