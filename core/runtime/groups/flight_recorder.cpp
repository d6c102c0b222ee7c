#include "core/runtime/groups/flight_recorder.h"

#include <algorithm>
#include <exception>
#include <filesystem>

#include <titan/files/file.h>
#include <titan/program/clock.h>

namespace titan::core {
namespace {

/// Sizes in bytes, from the bytes that this rank sends, by the operation's formula
/// (dist/group.cpp).
void tell_sizes(const dist::CommRecord& record, int64_t num_ranks, FlightEntry& entry) {
  const int64_t others = num_ranks - 1;
  const auto shares = [&](int64_t sent) { return others > 0 ? sent / others : 0; };
  const auto set = [&](int64_t in, int64_t out) {
    entry.in = {{in}};
    entry.out = {{out}};
  };
  if (record.operation == "all_reduce") {
    const int64_t all = shares(record.bytes) * num_ranks / 2;
    set(all, all);
  } else if (record.operation == "all_gather") {
    set(shares(record.bytes), shares(record.bytes) * num_ranks);
  } else if (record.operation == "reduce_scatter") {
    set(shares(record.bytes) * num_ranks, shares(record.bytes));
  } else if (record.operation == "all_to_all") {
    set(shares(record.bytes) * num_ranks, shares(record.bytes) * num_ranks);
  }
}

/// "send to 3" of group "pp" as a message of a group of two.
void tell_message(const dist::CommRecord& record, const std::string& group,
                  const std::vector<int>& ranks, int place, FlightRecord& flight,
                  FlightEntry& entry) {
  const bool sends = record.operation.starts_with("send");
  const int peer = std::stoi(record.operation.substr(record.operation.rfind(' ') + 1));
  const int from = sends ? place : peer, to = sends ? peer : place;
  entry.is_message = true;
  entry.operation = sends ? "send" : "recv";
  entry.group = group + " " + std::to_string(from) + ">" + std::to_string(to);
  std::vector<int> ends = {ranks.at(static_cast<size_t>(from)), ranks.at(static_cast<size_t>(to))};
  std::sort(ends.begin(), ends.end());
  entry.from = from < to ? 0 : 1;
  entry.to = 1 - entry.from;
  flight.groups.try_emplace(entry.group, FlightGroup{record.group, std::move(ends)});
}

std::string operation_of(const dist::CommRecord& record) {
  if (record.operation == "barrier") return "all_reduce_barrier";  // the analyser's name for it
  return record.operation.substr(0, record.operation.find(' '));
}

}  // namespace

FlightRecord flight_record(const dist::Mesh& mesh, const std::string& doing) {
  const dist::Recorder& recorder = mesh.recorder();
  FlightRecord flight;
  flight.rank = mesh.rank();
  flight.doing = doing;
  const double now = wall_seconds(), clock = monotonic_seconds();
  flight.written_ns = static_cast<int64_t>(1e9 * now);
  for (const std::string& name : mesh.grid().names()) {
    const std::vector<int> ranks = mesh.grid().ranks(mesh.rank(), name);
    if (ranks.size() > 1) flight.groups[name + "." + std::to_string(ranks.front())] = {name, ranks};
  }
  const std::vector<dist::CommRecord> records = recorder.records();
  flight.num_forgotten = recorder.num_started() - static_cast<int64_t>(records.size());
  for (const dist::CommRecord& record : records) {
    const std::vector<int> ranks = mesh.grid().ranks(mesh.rank(), record.group);
    const auto place = std::find(ranks.begin(), ranks.end(), mesh.rank()) - ranks.begin();
    FlightEntry entry;
    entry.id = flight.num_forgotten + static_cast<int64_t>(flight.entries.size());
    entry.group = record.group + "." + std::to_string(ranks.front());
    entry.operation = operation_of(record);
    entry.sequence = record.sequence;
    entry.dtype = "Byte";
    entry.is_awaited = record.awaited != 0;
    entry.is_done = record.finished != 0;
    entry.started_ns = static_cast<int64_t>(1e9 * (now - (clock - record.started)));
    if (record.is_message())
      tell_message(record, entry.group, ranks, static_cast<int>(place), flight, entry);
    else
      tell_sizes(record, static_cast<int64_t>(ranks.size()), entry);
    flight.entries.push_back(std::move(entry));
  }
  return flight;
}

std::string write_flight_record(const dist::Mesh& mesh, const std::string& doing,
                                const FlightFiles& files) {
  try {
    std::filesystem::create_directories(files.folder);
    const std::string path = files.folder + "/" + files.prefix + std::to_string(mesh.rank());
    write_text_atomically(path, to_flight_file(flight_record(mesh, doing)));
    return path;
  } catch (const std::exception&) {  // an error on the way out must not hide the first one
    return "";
  }
}

}  // namespace titan::core
