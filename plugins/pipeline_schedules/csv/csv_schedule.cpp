// See csv_schedule.h.
#include "csv_schedule.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <titan/error.h>

#include "csv_table.h"

namespace titan::pipeline_schedules {
namespace {

std::string content_of(const std::filesystem::path& file) {
  TITAN_CHECK(!file.empty(), config,
              "pipeline_schedule 'csv' needs the option 'file': the table to follow");
  TITAN_CHECK(!std::filesystem::is_directory(file), io, "cannot read the pipeline schedule ",
              file.string(), ": it is a folder");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  TITAN_CHECK(in.is_open() && !in.bad(), io, "cannot read the pipeline schedule ", file.string(),
              ": ", std::generic_category().message(errno));
  return content;
}

}  // namespace

CsvSchedule::CsvSchedule(const CsvScheduleOptions& options, PipelineScheduleContext)
    : file_(options.file),
      table_(parse_csv_table(content_of(options.file), options.file.string())),
      shape_(shape_of(table_)) {}

std::optional<std::string> CsvSchedule::problem(const PipelineShape& shape) const {
  const auto differs = [&](int wanted, int found, const char* what) -> std::optional<std::string> {
    if (wanted == found) return std::nullopt;
    return "needs " + std::to_string(wanted) + " " + what + ", as " + file_.string() +
           " has, but there are " + std::to_string(found);
  };
  if (auto wrong = differs(shape_.num_ranks, shape.num_ranks, "ranks")) return wrong;
  if (auto wrong = differs(shape_.num_stages, shape.num_stages, "stages")) return wrong;
  return differs(shape_.num_microbatches, shape.num_microbatches, "microbatches");
}

}  // namespace titan::pipeline_schedules
