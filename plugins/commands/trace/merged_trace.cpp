#include "merged_trace.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include <titan/error.h>
#include <titan/runs/trace_text.h>
#include <titan/runs/traced_collectives.h>
#include <titan/shown_text.h>

namespace titan::commands {
namespace {

/// Ids of arrows are unique only within a rank, so each rank gets a range of ids. JavaScript
/// represents integers up to 2^53 exactly.
constexpr int64_t kIdsOfRank = int64_t{1} << 32;
constexpr const char* kArrow = "collective";

/// A collective on one rank: where an arrow begins or ends.
struct Place {
  double begin = 0;
  int64_t rank = 0;
  Value tid;
};

/// The ranks of each group, from the trace's own table.
std::map<std::string, Value::List> groups_of(const Value& properties) {
  std::map<std::string, Value::List> groups;
  const Value* info = properties.find("distributedInfo");
  const Value* table = info ? info->find("pg_config") : nullptr;
  if (table && table->is_list())
    for (const Value& group : table->as_list())
      groups[group.at("pg_name").as_string()] = group.at("ranks").as_list();
  return groups;
}

Value process_row(int64_t rank, const char* what, const char* key, const Value& value) {
  return Value::map({{"ph", "M"},
                     {"name", what},
                     {"pid", rank},
                     {"tid", 0},
                     {"ts", 0},
                     {"args", Value::map({{key, value}})}});
}

/// The pid of the host process: Kineto labels it "CPU", and devices "GPU 0".
std::string host_pid_of(const std::vector<std::string_view>& events) {
  for (const std::string_view event : events)
    if (member_text(event, "name") == "process_labels" && member_text(event, "labels") == "CPU")
      return std::string(member_text(event, "pid"));
  return {};
}

class Merger {
 public:
  void add(int rank, std::string_view text) {
    const TraceParts parts = split_trace(text);
    const Value properties = trace_properties(parts);
    rank_ = rank;
    groups_ = groups_of(properties);
    const Value* base = properties.find("baseTimeNanoseconds");
    const int64_t nanoseconds = base && base->is_integer() ? base->as_integer() : 0;
    if (!base_) base_ = nanoseconds;
    shift_ = static_cast<double>(nanoseconds - *base_) / 1000;
    put(process_row(rank, "process_name", "name", "rank " + std::to_string(rank)));
    put(process_row(rank, "process_sort_index", "sort_index", rank));
    host_pid_ = host_pid_of(parts.events);
    for (const std::string_view event : parts.events) add_event(event);
  }

  MergedTrace finish() {
    int64_t id = 0;
    for (auto& [key, places] : collectives_) {
      if (places.size() < 2) continue;
      ++id;
      std::stable_sort(places.begin(), places.end(),
                       [](const Place& a, const Place& b) { return a.begin < b.begin; });
      for (size_t i = 0; i < places.size(); ++i) {
        const char end = i == 0 ? 's' : i + 1 == places.size() ? 'f' : 't';
        append(flow_event(end, kArrow, id, places[i].begin, std::to_string(places[i].rank),
                          to_json(places[i].tid)));
      }
    }
    merged_.num_collectives = id;
    merged_.text =
        "{\n  \"schemaVersion\": 1,\n  \"displayTimeUnit\": \"ms\",\n"
        "  \"baseTimeNanoseconds\": " +
        std::to_string(base_.value_or(0)) + ",\n  \"traceEvents\": [\n" + events_ + "\n  ]\n}\n";
    return std::move(merged_);
  }

 private:
  using Key = std::tuple<std::string, std::string, int64_t>;

  void append(std::string_view event) {
    if (merged_.num_events++ > 0) events_ += ",\n";
    events_ += event;
  }
  void put(const Value& event) { append(to_json(event)); }

  void add_event(std::string_view text) {
    Value event = parse_json(text);
    Value* pid = event.find("pid");
    if (!pid || pid->is_string()) return;  // spans of the profiler itself
    const Value* phase = event.find("ph");
    const std::string name = event.find("name") ? event.at("name").as_string() : "";
    if (phase && *phase == Value("M") && name.starts_with("process_")) return;
    if (const Value* tid = event.find("tid"); tid && to_json(*pid) != host_pid_)
      event["tid"] = "GPU " + to_json(*pid) + " stream " + to_json(*tid);
    event["pid"] = rank_;
    if (Value* time = event.find("ts")) *time = time->as_number() + shift_;
    if (Value* id = event.find("id"); id && id->is_integer())
      *id = (rank_ + 1) * kIdsOfRank + id->as_integer() % kIdsOfRank;
    if (const auto collective = traced_collective(text)) add_collective(*collective, event);
    put(event);
  }

  /// Renames the event to its operation and remembers its start for the arrows.
  void add_collective(const TracedCollective& found, Value& event) {
    event["name"] = (found.is_wait ? "wait for " : "") + found.operation + " (" + found.group +
                    ") " + std::to_string(found.sequence);
    if (found.is_wait) return;
    const auto group = groups_.find(found.group);
    if (group == groups_.end()) return;
    const Value::List& ranks = group->second;
    std::string operation = found.operation, members = to_json(Value(ranks));
    if (const auto ends = ends_of(found.operation, ranks)) operation = "message", members = *ends;
    const Value* tid = event.find("tid");
    collectives_[{found.group + " " + members, operation, found.sequence}].push_back(
        {found.begin + shift_, rank_, tid ? *tid : Value(0)});
  }

  /// "0>3" for a message between these ranks; nothing for a collective.
  std::optional<std::string> ends_of(const std::string& operation, const Value::List& ranks) const {
    const bool sends = operation.starts_with("send to ");
    if (!sends && !operation.starts_with("receive from ")) return std::nullopt;
    size_t place = 0;
    const std::string number = operation.substr(operation.rfind(' ') + 1);
    std::from_chars(number.data(), number.data() + number.size(), place);
    const std::string own = std::to_string(rank_);
    const std::string peer = place < ranks.size() ? to_json(ranks[place]) : "?";
    return sends ? own + ">" + peer : peer + ">" + own;
  }

  std::optional<int64_t> base_;
  int64_t rank_ = 0;
  std::string host_pid_;  // events of other pids belong to a GPU
  double shift_ = 0;      // microseconds
  std::map<std::string, Value::List> groups_;
  std::map<Key, std::vector<Place>> collectives_;
  std::string events_;
  MergedTrace merged_;
};

/// The number in "rank12_trace.json.gz".
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view kPrefix = "rank";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int rank = -1;
  const auto [end, error] =
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), rank);
  const std::string_view rest(end, name.data() + name.size());
  if (error != std::errc() || (rest != "_trace.json" && rest != "_trace.json.gz"))
    return std::nullopt;
  return rank;
}

}  // namespace

std::vector<RankTraceFile> find_rank_traces(const std::filesystem::path& folder) {
  std::vector<RankTraceFile> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const auto rank = rank_of(entry.path().filename().string()))
      files.push_back({*rank, entry.path()});
  TITAN_CHECK(!error, io, "cannot read the folder ", in_quotes(folder.string()), ": ",
              error.message());
  TITAN_CHECK(!files.empty(), io, "there is no trace in ", in_quotes(folder.string()),
              ": no file rank<R>_trace.json or rank<R>_trace.json.gz; runs write them with "
              "profiling.enable_profiling = true");
  std::sort(files.begin(), files.end(),
            [](const RankTraceFile& a, const RankTraceFile& b) { return a.rank < b.rank; });
  return files;
}

MergedTrace merge_traces(const std::vector<RankTraceFile>& files) {
  Merger merger;
  for (const RankTraceFile& file : files) {
    const std::string text = read_trace(file.path);
    try {
      merger.add(file.rank, text);
    } catch (Error& error) {
      error.with_context("in " + in_quotes(file.path.string()));
      throw;
    }
  }
  return merger.finish();
}

}  // namespace titan::commands
