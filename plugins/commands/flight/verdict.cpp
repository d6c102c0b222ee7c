#include "verdict.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <titan/program/quantity_text.h>

namespace titan::commands {
namespace {

/// Identifies a collective across ranks: the group, its counter, and for a message the two ranks.
using CollectiveId = std::tuple<std::string, bool, int, int, int64_t>;

CollectiveId collective_id_of(const FlightEntry& entry) {
  return {entry.group, entry.is_message, entry.from, entry.to, entry.sequence};
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string sizes_text(const std::vector<std::vector<int64_t>>& sizes) {
  std::string text;
  for (const std::vector<int64_t>& size : sizes) {
    text += text.empty() ? "[" : " [";
    for (size_t i = 0; i < size.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(size[i]);
    text += "]";
  }
  return text.empty() ? "of unknown size" : text;
}

/// Whether sizes must agree: not where members may pass different sizes or do not know all of them.
bool has_equal_sizes(const FlightEntry& entry) {
  static const std::set<std::string> kUneven = {"all_to_all", "broadcast", "scatter", "gather"};
  return !entry.is_message && !kUneven.contains(entry.operation);
}

class Judge {
 public:
  explicit Judge(const std::vector<FlightRecord>& records) : records_(records) {
    for (const FlightRecord& record : records) {
      of_rank_[record.rank] = &record;
      for (const auto& [name, group] : record.groups) groups_.emplace(name, group);
      for (const FlightEntry& entry : record.entries) {
        arrived_[collective_id_of(entry)][record.rank] = &entry;
        auto& last = last_[{entry.group, record.rank}];
        if (!entry.is_message) last = std::max(last, entry.sequence);
      }
    }
  }

  FlightVerdict run() {
    for (const auto& [id, entries] : arrived_) look_at(entries);
    std::stable_sort(verdict_.findings.begin(), verdict_.findings.end(),
                     [](const FlightFinding& a, const FlightFinding& b) {
                       return a.entry.started_ns < b.entry.started_ns;
                     });
    find_unknown();
    find_culprits();
    return std::move(verdict_);
  }

 private:
  using Entries = std::map<int, const FlightEntry*>;  // by rank

  std::vector<int> members_of(const FlightEntry& entry) const {
    const auto found = groups_.find(entry.group);
    return found == groups_.end() ? std::vector<int>() : found->second.ranks;
  }

  /// Whether a rank without this entry has not called it, rather than dropped an old entry.
  bool has_not_come(int rank, const FlightEntry& entry) const {
    const auto record = of_rank_.find(rank);
    if (record == of_rank_.end()) return true;  // no file: nothing shows that it came
    if (entry.is_message) return true;
    const auto last = last_.find({entry.group, rank});
    return last == last_.end() || last->second < entry.sequence;
  }

  void look_at(const Entries& entries) {
    FlightFinding finding;
    finding.entry = *entries.begin()->second;
    finding.members = members_of(finding.entry);
    bool is_done_somewhere = false;
    for (const auto& [rank, entry] : entries) {
      if (entry->is_done) {
        is_done_somewhere = true;
        continue;
      }
      if (!entry->is_awaited) continue;  // started ahead of its use
      if (finding.waiting.empty()) finding.entry = *entry;
      finding.waiting.push_back(rank);
      const FlightRecord& record = *of_rank_.at(rank);
      if (record.written_ns > 0)
        finding.waiting_seconds =
            std::max(finding.waiting_seconds,
                     1e-9 * static_cast<double>(record.written_ns - entry->started_ns));
    }
    if (compare(entries, finding)) {
      finding.kind = FlightFinding::Kind::differs;
      verdict_.findings.push_back(std::move(finding));
      return;
    }
    if (finding.waiting.empty()) return;
    for (const int rank : finding.members)
      if (!entries.contains(rank) && has_not_come(rank, finding.entry))
        finding.absent.push_back(rank);
    // a message in flight, or a collective that other ranks have finished
    if (finding.absent.empty() && (is_done_somewhere || finding.entry.is_message)) return;
    if (finding.absent.empty()) finding.kind = FlightFinding::Kind::unfinished;
    verdict_.findings.push_back(std::move(finding));
  }

  /// Adds a note on each rank's call when the calls differ.
  bool compare(const Entries& entries, FlightFinding& finding) const {
    const FlightEntry& first = *entries.begin()->second;
    if (first.is_message) return false;
    const bool is_equal = std::all_of(entries.begin(), entries.end(), [&](const auto& one) {
      const FlightEntry& entry = *one.second;
      return entry.operation == first.operation &&
             (!has_equal_sizes(entry) || (entry.in == first.in && entry.out == first.out));
    });
    if (is_equal) return false;
    for (const auto& [rank, entry] : entries)
      finding.notes.push_back("rank " + std::to_string(rank) + ": " + entry->operation + " " +
                              sizes_text(entry->in) + " -> " + sizes_text(entry->out));
    return true;
  }

  void find_unknown() {
    std::set<int> all;
    for (const auto& [name, group] : groups_) all.insert(group.ranks.begin(), group.ranks.end());
    for (const int rank : all)
      if (!of_rank_.contains(rank)) verdict_.unknown.push_back(rank);
  }

  void find_culprits() {
    std::map<int, std::set<int>> waits_for;
    std::set<int> contradicting, standing;
    for (const FlightFinding& finding : verdict_.findings) {
      if (finding.kind == FlightFinding::Kind::differs)
        contradicting.insert(finding.waiting.begin(), finding.waiting.end());
      for (const int rank : finding.waiting) {
        waits_for[rank].insert(finding.absent.begin(), finding.absent.end());
        standing.insert(rank);
      }
    }
    std::set<int> found;
    for (const auto& [rank, others] : waits_for)
      for (const int other : others)
        if (!standing.contains(other)) found.insert(other);
    if (found.empty()) found = contradicting;
    if (found.empty())
      for (const auto& [rank, others] : waits_for)
        if (reaches(waits_for, rank, rank)) found.insert(rank);
    verdict_.culprits.assign(found.begin(), found.end());
  }

  static bool reaches(const std::map<int, std::set<int>>& edges, int from, int to) {
    std::set<int> seen;
    std::vector<int> open = {from};
    while (!open.empty()) {
      const int rank = open.back();
      open.pop_back();
      const auto next = edges.find(rank);
      if (next == edges.end()) continue;
      for (const int other : next->second) {
        if (other == to) return true;
        if (seen.insert(other).second) open.push_back(other);
      }
    }
    return false;
  }

  const std::vector<FlightRecord>& records_;
  std::map<int, const FlightRecord*> of_rank_;
  std::map<std::string, FlightGroup> groups_;
  std::map<CollectiveId, Entries> arrived_;
  std::map<std::pair<std::string, int>, int64_t> last_;  // sequence of a group's last collective
  FlightVerdict verdict_;
};

std::string name_of(const FlightFinding& finding, const std::string& description) {
  const FlightEntry& entry = finding.entry;
  if (entry.is_message) {
    const auto rank = [&](int place) {
      return "rank " + std::to_string(finding.members.at(static_cast<size_t>(place)));
    };
    return "message number " + std::to_string(entry.sequence) + " of group '" + description +
           "' from " + rank(entry.from) + " to " + rank(entry.to);
  }
  return entry.operation + " number " + std::to_string(entry.sequence) + " of group '" +
         description + "' (" + ranks_text(finding.members) + ")";
}

std::string seconds_text(double seconds) {
  return seconds < 0 ? "" : " for " + duration_text(seconds);
}

const char* kind_name(FlightFinding::Kind kind) {
  switch (kind) {
    case FlightFinding::Kind::missing:
      return "missing";
    case FlightFinding::Kind::differs:
      return "differs";
    case FlightFinding::Kind::unfinished:
      return "unfinished";
  }
  return "";
}

Value list_of(const std::vector<int>& ranks) {
  Value list = Value::list();
  for (const int rank : ranks) list.as_list().emplace_back(rank);
  return list;
}

}  // namespace

FlightVerdict judge(const std::vector<FlightRecord>& records) {
  return Judge(records).run();
}

std::string to_text(const FlightVerdict& verdict, const std::vector<FlightRecord>& records) {
  std::map<std::string, std::string> descriptions;
  for (const FlightRecord& record : records)
    for (const auto& [name, group] : record.groups) descriptions[name] = group.description;
  std::string text;
  if (verdict.findings.empty())
    text += "no rank waits: no collective is in flight, and none differs between ranks\n";
  else if (!verdict.culprits.empty())
    text += ranks_text(verdict.culprits) + (verdict.culprits.size() == 1 ? " is" : " are") +
            " where to look\n";
  if (!verdict.unknown.empty()) text += ranks_text(verdict.unknown) + " left no record\n";
  for (const FlightFinding& finding : verdict.findings) {
    const std::string name = name_of(finding, descriptions[finding.entry.group]);
    text += "\n" + name + "\n";
    switch (finding.kind) {
      case FlightFinding::Kind::missing:
        text += "  " + ranks_text(finding.waiting) + " waited" +
                seconds_text(finding.waiting_seconds) + "; " + ranks_text(finding.absent) +
                " did not arrive\n";
        break;
      case FlightFinding::Kind::unfinished:
        text += "  all members arrived and waited" + seconds_text(finding.waiting_seconds) +
                ": the transport or the network hangs\n";
        break;
      case FlightFinding::Kind::differs:
        text += "  the members called different operations or sizes\n";
        for (const std::string& note : finding.notes) text += "  " + note + "\n";
        break;
    }
  }
  bool is_first = true;
  for (const FlightRecord& record : records) {
    if (record.doing.empty()) continue;
    text += std::string(std::exchange(is_first, false) ? "\n" : "") + "rank " +
            std::to_string(record.rank) + " was " + record.doing + "\n";
  }
  return text;
}

Value to_value(const FlightVerdict& verdict) {
  Value findings = Value::list();
  for (const FlightFinding& finding : verdict.findings) {
    Value notes = Value::list();
    for (const std::string& note : finding.notes) notes.as_list().emplace_back(note);
    findings.as_list().push_back(
        Value::map({{"kind", kind_name(finding.kind)},
                    {"group", finding.entry.group},
                    {"operation", finding.entry.operation},
                    {"sequence", finding.entry.sequence},
                    {"members", list_of(finding.members)},
                    {"waiting", list_of(finding.waiting)},
                    {"absent", list_of(finding.absent)},
                    {"waiting_seconds",
                     finding.waiting_seconds < 0 ? Value() : Value(finding.waiting_seconds)},
                    {"notes", std::move(notes)}}));
  }
  return Value::map({{"culprits", list_of(verdict.culprits)},
                     {"left_no_record", list_of(verdict.unknown)},
                     {"findings", std::move(findings)}});
}

}  // namespace titan::commands
