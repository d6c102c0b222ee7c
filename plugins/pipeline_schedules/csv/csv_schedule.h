// The schedule `csv`: whatever a file says. Registered by plugin.cpp.
#pragma once

#include <filesystem>

#include <titan/pipeline_schedule.h>

namespace titan::pipeline_schedules {

struct CsvScheduleOptions {
  std::filesystem::path file;  ///< must be given
};

/// Reads the file once; see csv_table.h for what it may hold.
class CsvSchedule final : public PipelineSchedule {
 public:
  /// Throws a config Error without a file, an io Error when it cannot be read, a data Error naming
  /// line and cell when it holds what it must not.
  CsvSchedule(const CsvScheduleOptions& options, PipelineScheduleContext);

  /// The table's, whatever the number of ranks.
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
