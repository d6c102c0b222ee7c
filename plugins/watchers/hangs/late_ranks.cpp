#include "late_ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <titan/program/quantity_text.h>

namespace titan::hangs {
namespace {

constexpr double kSilent = 5;  // seconds; a rank writes its file once a second

/// As core writes it into the status of a rank.
std::string text_of(const dist::CommRecord& record) {
  return "waits in " + record.operation + " number " + std::to_string(record.sequence) +
         " of group '" + record.group + "'";
}

/// The other ranks that take part.
std::vector<int> peers_of(const dist::Mesh& mesh, const std::optional<dist::CommRecord>& awaited) {
  std::vector<int> ranks(static_cast<size_t>(mesh.grid().world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (awaited) ranks = mesh.grid().ranks(mesh.rank(), awaited->group);
  if (awaited && awaited->is_message()) {
    const std::string& operation = awaited->operation;
    ranks = {ranks.at(std::stoul(operation.substr(operation.rfind(' ') + 1)))};
  }
  std::erase(ranks, mesh.rank());
  return ranks;
}

const RankStatus* find(const RankStatuses& statuses, int rank) {
  const auto found = std::find_if(statuses.ranks.begin(), statuses.ranks.end(),
                                  [=](const RankStatus& status) { return status.rank == rank; });
  return found == statuses.ranks.end() ? nullptr : &*found;
}

std::string line_of(const RankStatus& status, double silent) {
  std::string line = "rank " + std::to_string(status.rank) + " (host " + status.host + ", pid " +
                     std::to_string(status.pid) + ") was " + status.doing + ", by its status of " +
                     duration_text(silent) + " ago";
  if (silent > kSilent) line += ": its process or host is stopped or lost";
  return line;
}

std::string names_of(const std::vector<int>& ranks, const RankStatuses& statuses) {
  if (ranks.empty()) return "";
  if (ranks.size() == 1) {
    const RankStatus* status = find(statuses, ranks[0]);
    return "rank " + std::to_string(ranks[0]) + (status ? " (host " + status->host + ")" : "");
  }
  constexpr size_t kMost = 4;
  std::string names = "ranks ";
  for (size_t i = 0; i < std::min(kMost, ranks.size()); ++i)
    names += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kMost) names += " and " + std::to_string(ranks.size() - kMost) + " more";
  return names;
}

}  // namespace

std::optional<dist::CommRecord> awaited_collective(const dist::Recorder& recorder) {
  for (const dist::CommRecord& record : recorder.in_flight())
    if (record.awaited != 0) return record;
  return {};
}

LateRanks late_ranks(const dist::Mesh& mesh, const std::optional<dist::CommRecord>& awaited,
                     const RankStatuses& statuses, double now) {
  LateRanks late;
  std::vector<int> ranks;
  for (const int rank : peers_of(mesh, awaited)) {
    const RankStatus* status = find(statuses, rank);
    const double silent =
        status && std::isfinite(status->time) ? std::max(0.0, now - status->time) : 0;
    const bool has_arrived = !awaited || (status && status->doing.ends_with(text_of(*awaited)));
    if (has_arrived && silent <= kSilent) continue;
    ranks.push_back(rank);
    if (status && late.lines.size() < LateRanks::kMostLines)
      late.lines.push_back(line_of(*status, silent));
  }
  late.names = names_of(ranks, statuses);
  return late;
}

std::string ranks_in_phase(const RankStatuses& statuses, StepPhase phase, int own) {
  std::vector<int> ranks;
  for (const RankStatus& status : statuses.ranks)
    if (status.rank != own && status.phase == name_of(phase))
      ranks.push_back(static_cast<int>(status.rank));
  return names_of(ranks, statuses);
}

}  // namespace titan::hangs
