// Groups the checkpoints of a run's folder by branch. Used by resume and by the purge of old
// checkpoints.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/checkpoints/lineage.h>
#include <titan/export.h>

namespace titan {

/// A checkpoint with its branch. `lineage` is unknown for incomplete checkpoints, checkpoints saved
/// before lineages were recorded, and exports.
struct BranchStep {
  CheckpointStep step;
  Lineage lineage;
};

/// The checkpoints of one folder.
class TITAN_API Branches {
 public:
  /// Reads the manifest of every complete checkpoint. Throws as list_steps.
  explicit Branches(const std::filesystem::path& folder);

  /// All checkpoints, ascending by step.
  const std::vector<BranchStep>& steps() const { return steps_; }
  /// The branch that began last; unknown if no checkpoint records one.
  const Lineage& newest() const { return newest_; }
  /// The checkpoints that `lineage` descends from or consists of, in the order of training; all, if
  /// `lineage` is unknown.
  ///
  /// A checkpoint without a record counts as one of branch 0. Incomplete checkpoints count as part
  /// of `lineage` itself; so do exports and damaged checkpoints that were written after it began.
  std::vector<CheckpointStep> line_of(const Lineage& lineage) const;
  /// The newest checkpoint of the newest branch with one of `markers`.
  std::optional<CheckpointStep> newest_step(std::initializer_list<Marker> markers) const;
  /// Errors of manifests that could not be read; the branches of these checkpoints are unknown.
  const std::vector<std::string>& problems() const { return problems_; }
  /// The complete checkpoints that line_of leaves out.
  std::vector<CheckpointStep> others(const Lineage& lineage) const;

 private:
  std::vector<BranchStep> steps_;
  std::vector<std::string> problems_;
  Lineage newest_;
};

}  // namespace titan
