#include "failure_record.h"

#include <exception>
#include <fstream>

#include <titan/checkpoints/members.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/program/text.h>
#include <titan/value.h>

namespace titan::commands {
namespace {

FailureRecord parse_failure(const std::string& line) {
  const Value value = parse_json(line);
  const std::string place = kFailuresName;
  const Members members(value, place, "");
  FailureRecord record{.time = members.number("time"),
                       .rank = members.integer("rank", 0),
                       .world_size = members.integer("world_size", 1),
                       .how = members.text("how"),
                       .error = members.text("error"),
                       .seen = members.text("seen"),
                       .log = members.text("log"),
                       .response = members.text("response")};
  if (members.find("step")) record.step = members.integer("step", 0);
  return record;
}

}  // namespace

const char* kind_of(const FailureRecord& failure) {
  for (const std::string& error : {failure.error, failure.seen})
    if (first_line(error).find("hang: rank ") != std::string::npos) return "hang";
  return failure.how.find(" signal ") != std::string::npos ? "signal" : "error";
}

void append_failure(const std::filesystem::path& run_folder, const FailureRecord& record) {
  Value line =
      Value::map({{"time", record.time}, {"rank", record.rank}, {"world_size", record.world_size}});
  if (record.step) line["step"] = *record.step;
  line["how"] = record.how;
  line["error"] = record.error;
  line["seen"] = record.seen;
  line["log"] = record.log;
  line["response"] = record.response;
  const std::filesystem::path path = run_folder / kFailuresName;
  std::ofstream file(path, std::ios::binary | std::ios::app);  // launchers of several nodes append
  file << to_json(line) + "\n" << std::flush;
  TITAN_CHECK(file, io, "cannot write to '", path.string(), "'");
}

FailureRecords read_failures(const std::filesystem::path& run_folder) {
  FailureRecords found;
  const std::filesystem::path path = run_folder / kFailuresName;
  if (!std::filesystem::exists(path)) return found;
  const std::string text = read_text(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // torn by a kill
    try {
      found.records.push_back(parse_failure(text.substr(begin, end - begin)));
    } catch (const std::exception&) {
      ++found.num_unreadable;
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace titan::commands
