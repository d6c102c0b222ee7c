#include "core/runtime/groups/flight_recorder.h"

#include <filesystem>
#include <fstream>

#include <titan/value.h>

#include "core/base/clock.h"

namespace titan::core {

std::string write_flight_record(const dist::Recorder& recorder, const std::string& folder,
                                const std::string& prefix, int rank) {
  const double now = monotonic_seconds();
  Value::List entries;
  for (const dist::CommRecord& record : recorder.records())
    entries.push_back(Value::map(
        {{"group", record.group},
         {"sequence", record.sequence},
         {"operation", record.operation},
         {"bytes", record.bytes},
         {"state", record.finished != 0 ? "finished" : "under way"},
         {"started_seconds_ago", now - record.started},
         {"finished_seconds_ago", record.finished != 0 ? Value(now - record.finished) : Value()}}));
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/" + prefix + std::to_string(rank) + ".json";
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << to_json(Value::map({{"rank", rank}, {"collectives", std::move(entries)}}), 1) << '\n';
  out.close();
  return out ? path : "";
}

}  // namespace titan::core
