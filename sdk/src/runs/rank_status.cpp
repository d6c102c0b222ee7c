#include <titan/runs/rank_status.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

/// Maximum number of readings of a malformed file: its writer finishes within microseconds.
constexpr int kMostReads = 5;

double told_number(const Value& status, std::string_view name) {
  const Value* value = status.find(name);
  return value && (value->is_number() || value->is_integer()) ? value->as_number()
                                                              : RankStatus::kUnknown;
}

int64_t told_count(const Value& status, std::string_view name) {
  const Value* value = status.find(name);
  return value && value->is_integer() ? value->as_integer() : -1;
}

std::string told_text(const Value& status, std::string_view name) {
  const Value* value = status.find(name);
  return value && value->is_string() ? value->as_string() : std::string();
}

RankStatus read_status(const fs::path& path) {
  for (int i = 1; i < kMostReads; ++i) {
    try {
      return parse_rank_status(read_text(path));
    } catch (const Error&) {  // half-written; the last reading throws
    }
  }
  return parse_rank_status(read_text(path));
}

}  // namespace

std::optional<int64_t> rank_in_name(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kPrefix = "rank_";
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(suffix.size());
  int64_t rank = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (error != std::errc() || stop != name.data() + name.size() || rank < 0) return std::nullopt;
  return rank;
}

double RankStatus::communication_share() const {
  double all = 0, communication = kUnknown;
  for (const auto& [name, took] : phases) {
    all += took;
    if (name == "communication") communication = took;
  }
  return all > 0 ? communication / all : kUnknown;
}

RankStatus parse_rank_status(std::string_view json) {
  const Value file = parse_json(json);
  TITAN_CHECK(file.is_map() && file.find("rank"), data, "it is not the status of a rank");
  RankStatus status;
  status.rank = told_count(file, "rank");
  TITAN_CHECK(status.rank >= 0, data, "member 'rank' is not a rank");
  status.world_size = told_count(file, "world_size");
  status.host = told_text(file, "host");
  status.pid = told_count(file, "pid");
  status.time = told_number(file, "time");
  status.state = told_text(file, "state");
  status.step = told_count(file, "step");
  status.steps = told_count(file, "steps");
  status.phase = told_text(file, "phase");
  status.doing = told_text(file, "doing");
  status.waiting_seconds = told_number(file, "waiting_seconds");
  status.tokens_per_second = told_number(file, "tokens_per_second");
  status.step_seconds = told_number(file, "step_seconds");
  status.loss = told_number(file, "loss");
  status.memory_bytes = told_number(file, "memory_bytes");
  status.memory_total = told_number(file, "memory_total");
  if (const Value* phases = file.find("seconds"); phases && phases->is_map())
    for (const auto& [name, value] : phases->as_map())
      status.phases.emplace_back(name, told_number(*phases, name));
  return status;
}

RankStatuses read_rank_statuses(const fs::path& run_folder) {
  RankStatuses statuses;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(run_folder / "status", error)) {
    const std::string name = file.path().filename().string();
    const std::optional<int64_t> rank = rank_in_name(name, ".json");
    if (!rank) continue;
    try {
      RankStatus status = read_status(file.path());
      TITAN_CHECK(status.rank == *rank, data, "it is of rank ", status.rank);
      statuses.ranks.push_back(std::move(status));
    } catch (const Error& e) {
      statuses.unreadable.push_back(name + ": " + e.message());
    }
  }
  std::sort(statuses.ranks.begin(), statuses.ranks.end(),
            [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
  std::sort(statuses.unreadable.begin(), statuses.unreadable.end());
  return statuses;
}

}  // namespace titan
