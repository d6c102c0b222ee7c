// See jsonl_logger.h.
#include "jsonl_logger.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/value.h>

#include "../common/run_files.h"

namespace titan::loggers {
namespace {

Value exact(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  TITAN_CHECK(in && !in.bad(), io, "cannot read '", path.string(), "'");
  return text;
}

int64_t step_of(std::string_view line) {
  const Value value = parse_json(line);
  const Value* step = value.find("step");
  TITAN_CHECK(step && step->is_integer(), data, "no integer member 'step'");
  return step->as_integer();
}

}  // namespace

void drop_later_steps(const std::filesystem::path& path, int64_t last_step) {
  const std::string text = read_all(path);
  const size_t whole = text.rfind('\n') + 1;  // npos + 1 = 0: no complete line
  // Steps never decrease, so the lines to drop are at the end and this loop is short.
  size_t keep = whole;
  while (keep > 0) {
    const size_t start = keep < 2 ? 0 : text.rfind('\n', keep - 2) + 1;
    try {
      if (step_of(std::string_view(text).substr(start, keep - 1 - start)) <= last_step) break;
    } catch (const Error& error) {
      const auto line =
          1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(start), '\n');
      fail(ErrorKind::data, path.string(), ":", line, ": not a line of metrics: ", error.message(),
           "; move the file away to let the run write a new one");
    }
    keep = start;
  }
  if (keep == text.size()) return;
  std::error_code reason;
  std::filesystem::resize_file(path, keep, reason);
  TITAN_CHECK(!reason, io, "cannot truncate '", path.string(), "' to ", keep,
              " bytes: ", reason.message());
}

void JsonlLogger::start(const RunInfo& run) {
  const std::string suffix =
      has_files_per_rank(run) ? "_rank_" + std::to_string(run.rank) : std::string();
  const std::filesystem::path path = run.dump_folder / ("metrics" + suffix + ".jsonl");
  const bool resumes = run.resumed_step > 0 && std::filesystem::exists(path);
  if (resumes) drop_later_steps(path, run.resumed_step);
  output_ = OutputFile(path, resumes ? OutputFile::Mode::append : OutputFile::Mode::truncate);
}

void JsonlLogger::log(int64_t step, std::span<const Scalar> scalars) {
  Value::Map line;
  line.reserve(scalars.size() + 2);
  line.emplace_back("step", step);
  line.emplace_back("wall_time", log_time());
  for (const Scalar& scalar : scalars) line.emplace_back(scalar.tag, exact(scalar.value));
  output_.append(to_json(Value(std::move(line))) + "\n");
}

void JsonlLogger::finish(RunOutcome) noexcept {
  try {
    output_.close();
  } catch (const std::exception& error) {
    titan::log::warn(error.what());
  }
}

}  // namespace titan::loggers
