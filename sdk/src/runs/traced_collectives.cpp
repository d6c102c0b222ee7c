#include <titan/runs/traced_collectives.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <tuple>
#include <utility>

namespace titan {
namespace {

constexpr std::string_view kWait = "wait for ";

/// The first of "Concrete Inputs": ["12", ...]. Unset for those of a transport, whose first is a
/// pair.
std::optional<int64_t> sequence_of(std::string_view event) {
  std::string_view inputs = member_text(event, "Concrete Inputs");
  if (!inputs.starts_with("[\"")) return std::nullopt;
  inputs.remove_prefix(2);
  int64_t sequence = 0;
  const auto [end, error] = std::from_chars(inputs.data(), inputs.data() + inputs.size(), sequence);
  if (error != std::errc() || *end != '"') return std::nullopt;
  return sequence;
}

double number_of(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::optional<TracedCollective> traced_collective(std::string_view event) {
  if (event.find("\"record_param_comms\"") == event.npos) return std::nullopt;
  const std::optional<int64_t> sequence = sequence_of(event);
  std::string_view operation = member_text(event, "Collective name");
  if (!sequence || operation.empty()) return std::nullopt;
  const bool is_wait = operation.starts_with(kWait);
  if (is_wait) operation.remove_prefix(kWait.size());
  return TracedCollective{.group = std::string(member_text(event, "Process Group Name")),
                          .operation = std::string(operation),
                          .sequence = *sequence,
                          .is_wait = is_wait,
                          .begin = number_of(member_text(event, "ts")),
                          .pid = member_text(event, "pid"),
                          .tid = member_text(event, "tid")};
}

std::string flow_event(char end, std::string_view category, int64_t id, double time,
                       std::string_view pid, std::string_view tid) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", time);
  std::string event = "{\"ph\": \"";
  event += end;
  event.append("\", ").append(end == 's' ? "" : "\"bp\": \"e\", ");
  event.append("\"cat\": \"").append(category).append("\", \"name\": \"").append(category);
  event.append("\", \"id\": ").append(std::to_string(id)).append(", \"pid\": ").append(pid);
  return event.append(", \"tid\": ").append(tid).append(", \"ts\": ").append(text).append("}");
}

std::vector<std::string> wait_arrows(const TraceParts& parts) {
  using Key = std::tuple<std::string, std::string, int64_t>;
  std::map<Key, TracedCollective> started;
  std::vector<TracedCollective> waits;
  for (const std::string_view event : parts.events) {
    std::optional<TracedCollective> found = traced_collective(event);
    if (!found) continue;
    if (found->is_wait)
      waits.push_back(std::move(*found));
    else
      started.insert_or_assign({found->group, found->operation, found->sequence}, *found);
  }
  std::vector<std::string> arrows;
  int64_t next_id = 1;
  for (const TracedCollective& wait : waits) {
    const auto start = started.find({wait.group, wait.operation, wait.sequence});
    if (start == started.end()) continue;  // it started before the recording
    const TracedCollective& from = start->second;
    arrows.push_back(flow_event('s', "wait", next_id, from.begin, from.pid, from.tid));
    arrows.push_back(flow_event('f', "wait", next_id, wait.begin, wait.pid, wait.tid));
    ++next_id;
  }
  return arrows;
}

}  // namespace titan
