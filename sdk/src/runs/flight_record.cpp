#include <titan/runs/flight_record.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/pickle.h>

namespace titan {
namespace {

constexpr const char* kFlightVersion = "2.10";
/// Prefix of an operation's name: PyTorch's analyser knows no other transport.
constexpr const char* kTransport = "nccl:";

std::string list_text(const std::vector<int>& numbers) {
  std::string text = "[";
  for (const int number : numbers) text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

std::vector<int> numbers_of(const Value& value) {
  const Value list = value.is_string() ? parse_json(value.as_string()) : value;
  std::vector<int> numbers;
  for (const Value& item : list.as_list()) numbers.push_back(static_cast<int>(item.as_integer()));
  return numbers;
}

Value list_of(const std::vector<std::vector<int64_t>>& sizes) {
  Value lists = Value::list();
  for (const std::vector<int64_t>& size : sizes) {
    Value list = Value::list();
    for (const int64_t number : size) list.as_list().push_back(number);
    lists.as_list().push_back(std::move(list));
  }
  return lists;
}

std::vector<std::vector<int64_t>> sizes_of(const Value& value) {
  std::vector<std::vector<int64_t>> sizes;
  for (const Value& item : value.as_list()) {
    sizes.emplace_back();
    for (const Value& number : item.as_list()) sizes.back().push_back(number.as_integer());
  }
  return sizes;
}

Value dtypes(const FlightEntry& entry, size_t count) {
  Value list = Value::list();
  for (size_t i = 0; i < count; ++i) list.as_list().emplace_back(entry.dtype);
  return list;
}

std::string profiling_name(const FlightEntry& entry) {
  if (!entry.is_message) return kTransport + entry.operation;
  const bool sends = entry.operation == "send";
  return std::string(kTransport) + entry.operation + " " +
         std::to_string(sends ? entry.from : entry.to) + (sends ? "->" : "<-") +
         std::to_string(sends ? entry.to : entry.from);
}

/// Splits "nccl:send 0->1" into the entry's fields.
void take_name(std::string name, FlightEntry& entry) {
  name.erase(0, name.find(':') + 1);  // npos + 1 = 0
  const size_t blank = name.find(' ');
  entry.operation = name.substr(0, blank);
  if (!entry.is_message || blank == std::string::npos) return;
  const size_t arrow = name.find_first_of("<-", blank);
  TITAN_CHECK(arrow != std::string::npos && arrow + 2 < name.size(), data, "'", name,
              "' is not the name of a message");
  const bool sends = name[arrow] == '-';
  (sends ? entry.from : entry.to) = std::atoi(name.c_str() + blank + 1);
  (sends ? entry.to : entry.from) = std::atoi(name.c_str() + arrow + 2);
}

Value to_value(const FlightEntry& entry, const FlightRecord& record) {
  return Value::map(
      {{"record_id", entry.id},
       {"pg_id", 0},
       {"process_group", Value::list({entry.group, record.groups.at(entry.group).description})},
       {"collective_seq_id", entry.sequence},
       {"p2p_seq_id", entry.is_message ? entry.sequence : 0},
       {"op_id", entry.id},
       {"profiling_name", profiling_name(entry)},
       {"time_created_ns", entry.started_ns},
       {"input_sizes", list_of(entry.in)},
       {"output_sizes", list_of(entry.out)},
       {"input_dtypes", dtypes(entry, entry.in.size())},
       {"output_dtypes", dtypes(entry, entry.out.size())},
       // the analyser reports a mismatch when members differ in it, and an operation that a rank
       // does not wait for yet must not count as one where it hangs
       {"state", entry.is_done || !entry.is_awaited ? "completed" : "scheduled"},
       {"retired", entry.is_done},
       {"timeout_ms", 0},
       {"is_p2p", entry.is_message},
       {"awaited", entry.is_awaited},
       {"frames", Value::list()}});
}

FlightEntry entry_from(const Value& value) {
  FlightEntry entry;
  entry.id = value.at("record_id").as_integer();
  entry.group = value.at("process_group").as_list().at(0).as_string();
  entry.is_message = value.at("is_p2p").as_boolean();
  entry.sequence = value.at(entry.is_message ? "p2p_seq_id" : "collective_seq_id").as_integer();
  take_name(value.at("profiling_name").as_string(), entry);
  entry.in = sizes_of(value.at("input_sizes"));
  entry.out = sizes_of(value.at("output_sizes"));
  if (const Value* types = value.find("input_dtypes");
      types && types->is_list() && !types->as_list().empty() && types->as_list()[0].is_string())
    entry.dtype = types->as_list()[0].as_string();
  const Value* awaited = value.find("awaited");  // PyTorch does not write it
  entry.is_awaited = !awaited || awaited->as_boolean();
  entry.is_done = entry.is_awaited && value.at("state").as_string() == "completed";
  entry.started_ns = value.at("time_created_ns").as_integer();
  return entry;
}

std::optional<int> rank_of(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return std::nullopt;
  int rank = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, rank);
  if (error != std::errc() || stop != end || rank < 0) return std::nullopt;
  return rank;
}

}  // namespace

std::string to_flight_file(const FlightRecord& record) {
  Value groups = Value::map(), status = Value::map(), entries = Value::list();
  for (const auto& [name, group] : record.groups)
    groups[name] = Value::map(
        {{"name", name}, {"desc", group.description}, {"ranks", list_text(group.ranks)}});
  for (const FlightEntry& entry : record.entries)
    entries.as_list().push_back(to_value(entry, record));
  return to_pickle(Value::map({{"version", kFlightVersion},
                               {"pg_config", std::move(groups)},
                               {"pg_status", std::move(status)},
                               {"rank", record.rank},
                               {"titan", Value::map({{"written_ns", record.written_ns},
                                                     {"doing", record.doing},
                                                     {"num_forgotten", record.num_forgotten}})},
                               {"entries", std::move(entries)}}));
}

FlightRecord parse_flight_file(std::string_view bytes, int rank) {
  FlightRecord record;
  record.rank = rank;
  try {
    const Value file = parse_pickle(bytes);
    TITAN_CHECK(file.is_map(), data, "it is not a dictionary");
    for (const auto& [name, group] : file.at("pg_config").as_map())
      record.groups[name] = {group.at("desc").as_string(), numbers_of(group.at("ranks"))};
    for (const Value& entry : file.at("entries").as_list())
      record.entries.push_back(entry_from(entry));
    if (const Value* own = file.find("titan")) {
      record.written_ns = own->at("written_ns").as_integer();
      record.doing = own->at("doing").as_string();
      record.num_forgotten = own->at("num_forgotten").as_integer();
    }
  } catch (const Error& e) {
    fail(ErrorKind::data, "it is not a flight record: ", e.message());
  } catch (const std::exception& e) {
    fail(ErrorKind::data, "it is not a flight record: ", e.what());
  }
  return record;
}

std::vector<FlightRecord> read_flight_folder(const std::string& folder, const std::string& prefix) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<FlightRecord> records;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const std::optional<int> rank = rank_of(file.path().filename().string(), prefix);
    if (!rank || !file.is_regular_file()) continue;
    try {
      records.push_back(parse_flight_file(read_text(file.path()), *rank));
    } catch (Error& e) {
      e.with_context("in '" + file.path().string() + "'");
      throw;
    }
  }
  TITAN_CHECK(!error, io, "cannot read the folder '", folder, "': ", error.message());
  TITAN_CHECK(!records.empty(), io, "there is no flight record ", prefix, "<rank> in '", folder,
              "': a run writes them into comm_traces of its dump_folder when it fails, or when its "
              "ranks get SIGUSR2");
  std::sort(records.begin(), records.end(),
            [](const FlightRecord& a, const FlightRecord& b) { return a.rank < b.rank; });
  return records;
}

}  // namespace titan
