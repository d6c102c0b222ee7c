// The record "lineage" of manifest.json: job and branch of a checkpoint, and how the branch began.
// Used by resume and by the purge of old checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include <titan/checkpoints/members.h>
#include <titan/export.h>

namespace titan {

/// The settings of [checkpoint] that determine how a branch begins. A later start with the same
/// settings is a restart: it continues the branch and does not apply them again.
struct BranchStart {
  int64_t load_step = -1;
  std::vector<std::string> excluded;  ///< checkpoint.exclude_from_loading, as configured
  std::string initial_load_path;      ///< empty: not set
};

/// Whether `wanted` has keys that begin a branch and that no start has applied yet.
TITAN_API bool begins_branch(const BranchStart& wanted, const BranchStart& applied);
/// 32 random hexadecimal digits.
TITAN_API std::string new_job_id();

/// A job is all starts that continue in one checkpoint folder. Its first branch has the number 0. A
/// start that returns to an earlier step (checkpoint.load_step), or that does not load all of the
/// stored state, begins the next branch.
struct TITAN_API Lineage {
  /// A step of a branch.
  struct Point {
    std::string job;
    int64_t branch = 0, step = 0;
  };

  std::string job;  ///< 32 hexadecimal digits; empty: not recorded
  int64_t branch = 0;
  std::vector<Point> ancestors;  ///< of this job, oldest first: where each branch left its parent
  std::optional<Point> parent;   ///< the step that this branch began from; may be of another job
  BranchStart start;
  double time = 0;  ///< when the branch began, in seconds since 1970

  bool is_known() const { return !job.empty(); }
  /// Index of `branch` in the sequence of branches that leads to this one, if step `step` of
  /// `branch` is an ancestor or a part of this branch.
  std::optional<size_t> place_of(int64_t branch, int64_t step) const;
};

/// {"version": 1, "job", "branch", "ancestors", "parent", "start", "time"}; unset members are
/// omitted.
TITAN_API Value to_value(const Lineage& lineage);
/// Throws a data Error for a missing member, a wrong type or a newer version.
TITAN_API Lineage parse_lineage(const Members& members);

}  // namespace titan
