// The schedule `csv`: a table of actions from a file. Registered by plugin.cpp.
#pragma once

#include <filesystem>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

struct CsvScheduleOptions {
  std::filesystem::path file;  ///< required
};

/// Reads the file once; csv_table.h describes its format.
class CsvSchedule final : public PipelineSchedule {
 public:
  /// Throws a config Error without a file, an io Error if it cannot be read, a data Error with line
  /// and cell if its format is invalid.
  CsvSchedule(const CsvScheduleOptions& options, PipelineScheduleContext);

  /// The table's number, for any number of ranks.
  int default_num_stages(int) const override { return shape_.num_stages; }
  /// The shape must be that of the table.
  std::optional<std::string> problem(const PipelineShape& shape) const override;
  PipelineTable plan(const PipelineShape&) const override { return table_; }

 private:
  std::filesystem::path file_;
  PipelineTable table_;
  PipelineShape shape_;
};

}  // namespace titan::pipeline_schedules
