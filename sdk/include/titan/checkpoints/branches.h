// The steps of a run's checkpoint folder, by the branch that each belongs to. Used by resume and by
// the purge of old checkpoints.
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

/// A step with its branch. `lineage` is not known of an incomplete step, of one that was saved
/// before lineages were recorded, and of an export for others.
struct BranchStep {
  CheckpointStep step;
  Lineage lineage;
};

/// The steps of one folder.
class TITAN_API Branches {
 public:
  /// Reads the manifest of every complete step. Throws as list_steps.
  explicit Branches(const std::filesystem::path& folder);

  /// All steps, ascending.
  const std::vector<BranchStep>& steps() const { return steps_; }
  /// The branch that began last. Not known where no step records one.
  const Lineage& newest() const { return newest_; }
  /// The steps that `lineage` descends from or consists of, in the order of training.
  ///
  /// A step without a record counts as one of branch 0. An export, an incomplete step and a damaged
  /// one count as steps of `lineage` itself if they were written after it began, or if it is not
  /// known.
  std::vector<CheckpointStep> line_of(const Lineage& lineage) const;
  /// The newest step of the newest branch whose marker is one of `markers`.
  std::optional<CheckpointStep> newest_step(std::initializer_list<Marker> markers) const;
  /// Why manifests could not be read: their steps' branches are not known.
  const std::vector<std::string>& problems() const { return problems_; }
  /// The complete steps that line_of leaves out.
  std::vector<CheckpointStep> others(const Lineage& lineage) const;

 private:
  std::vector<BranchStep> steps_;
  std::vector<std::string> problems_;
  Lineage newest_;
};

}  // namespace titan
