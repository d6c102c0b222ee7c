#include <titan/checkpoints/branches.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <titan/checkpoints/manifest.h>
#include <titan/error.h>
#include <titan/program/clock.h>

namespace titan {
namespace {

constexpr int64_t kNoBranch = -1;  // of a step that does not name its branch

/// The time at which the file that makes a step complete was written, in seconds since 1970;
/// without such a file, the folder's own time.
double written_at(const CheckpointStep& step) {
  std::error_code error;
  for (const char* name : {kManifestName, kHfIndexName, kHfSingleName, ""}) {
    const auto time = std::filesystem::last_write_time(step.path / name, error);
    if (!error) return wall_seconds(time);
  }
  return 0;
}

BranchStep with_branch(const CheckpointStep& step, std::vector<std::string>& problems) {
  BranchStep result{step, {}};
  if (step.marker != Marker::manifest) {
    result.lineage.branch = kNoBranch;
    return result;
  }
  try {
    result.lineage = read_checkpoint_manifest(step.path).lineage;
  } catch (const Error& e) {
    problems.push_back("the branch of '" + step.path.string() + "' is not known: " + e.message());
    result.lineage.branch = kNoBranch;
  }
  return result;
}

/// The place of a step in the sequence of branches that lead to `lineage`.
std::optional<size_t> place_in(const Lineage& lineage, const BranchStep& step) {
  if (!lineage.is_known()) return 0;
  if (step.lineage.branch != kNoBranch)
    return lineage.place_of(step.lineage.branch, step.step.step);
  const bool is_of_it = step.step.marker == Marker::none || written_at(step.step) >= lineage.time;
  return is_of_it ? std::optional(lineage.ancestors.size()) : std::nullopt;
}

}  // namespace

Branches::Branches(const std::filesystem::path& folder) {
  for (const CheckpointStep& step : list_steps(folder)) {
    steps_.push_back(with_branch(step, problems_));
    const Lineage& lineage = steps_.back().lineage;
    if (lineage.is_known() && (!newest_.is_known() || lineage.branch >= newest_.branch))
      newest_ = lineage;
  }
}

std::vector<CheckpointStep> Branches::line_of(const Lineage& lineage) const {
  std::vector<std::pair<size_t, CheckpointStep>> placed;
  for (const BranchStep& step : steps_)
    if (const auto place = place_in(lineage, step)) placed.emplace_back(*place, step.step);
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CheckpointStep> line;
  for (auto& [place, step] : placed) line.push_back(std::move(step));
  return line;
}

std::optional<CheckpointStep> Branches::newest_step(std::initializer_list<Marker> markers) const {
  const std::vector<CheckpointStep> line = line_of(newest_);
  const auto found = std::find_if(line.rbegin(), line.rend(), [&](const CheckpointStep& step) {
    return std::find(markers.begin(), markers.end(), step.marker) != markers.end();
  });
  return found == line.rend() ? std::nullopt : std::optional(*found);
}

std::vector<CheckpointStep> Branches::others(const Lineage& lineage) const {
  std::vector<CheckpointStep> others;
  for (const BranchStep& step : steps_)
    if (step.step.marker != Marker::none && !place_in(lineage, step)) others.push_back(step.step);
  return others;
}

}  // namespace titan
