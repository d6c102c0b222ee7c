// Pipeline tables: an accepted table survives writing and reading, and is either proved to run or
// refused.
#include <stdexcept>

#include <titan/error.h>
#include <titan/pipelines/table_csv.h>

#include "core/pipeline/plan.h"
#include "plugins/pipeline_schedules/csv/csv_table.h"
#include "tests/fuzz/data_entries.h"

namespace titan::fuzz {
namespace {

using pipeline_schedules::parse_csv_table;

/// A schedule that returns the table that was read, for its shape.
class ReadSchedule final : public PipelineSchedule {
 public:
  explicit ReadSchedule(const PipelineTable& table) : table_(table) {}

  int default_num_stages(int num_ranks) const override { return num_ranks; }
  std::optional<std::string> problem(const PipelineShape&) const override { return std::nullopt; }
  PipelineTable plan(const PipelineShape&) const override { return table_; }

 private:
  const PipelineTable& table_;
};

void read_pipeline_csv(std::string_view content, const std::string& name) {
  const PipelineTable table = parse_csv_table(content, name);
  require(!table.empty(), "a table without rows");
  for (const auto& row : table) require(!row.empty(), "a row without actions");
  require(parse_csv_table(to_csv(table), name) == table, "a table is read as another");
  const PipelineShape shape = pipeline_schedules::shape_of(table);
  try {
    const PipelinePlan plan = core::make_plan(ReadSchedule(table), name, shape);
    require(compute_table(plan) == table, "a plan of another table");
  } catch (const Error& e) {
    require(e.kind() == ErrorKind::plugin || e.kind() == ErrorKind::config, e.what());
    require(e.message().size() < 4000, "a message of no use");
  }
}

std::vector<std::string> pipeline_csv_corpus() {
  return {"0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n",
          "0F0,3F0,3I0,3W0,0I0,0W0\r\n1F0,2F0,2I0,1I0,2W0,1W0\r\n",
          "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
          "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
          "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
          "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n",
          "0F0,2F0,2B0,0B0\n3F0,1F0,1B0,3B0\n"};
}

}  // namespace

const FileKind kPipelineCsv = {"pipeline_csv", read_pipeline_csv, pipeline_csv_corpus, nullptr};

}  // namespace titan::fuzz
