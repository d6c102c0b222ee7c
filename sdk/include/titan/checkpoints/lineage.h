// Which job a checkpoint belongs to, on which branch of its steps, and how that branch began: the
// record "lineage" of manifest.json. Used by resume and by the purge of old checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/value.h>

#include <titan/checkpoints/members.h>
#include <titan/export.h>

namespace titan {

/// The settings of [checkpoint] that say how a branch begins. A later start with the same settings
/// is a restart: it continues the branch and does not apply them again.
struct BranchStart {
  int64_t load_step = -1;
  std::vector<std::string> excluded;  ///< checkpoint.exclude_from_loading, as it is written
  std::string initial_load_path;      ///< empty: not set
};

/// A job is all starts that continue in one checkpoint folder. Its first branch has the number 0. A
/// start that goes back to a step (checkpoint.load_step), or that leaves out a part of the stored
/// state, begins the next branch.
struct TITAN_API Lineage {
  /// A step of a branch.
  struct Point {
    std::string job;
    int64_t branch = 0, step = 0;
  };

  std::string job;  ///< 32 hexadecimal digits; empty: not recorded
  int64_t branch = 0;
  std::vector<Point> ancestors;  ///< of this job, oldest first: where each branch left the last one
  std::optional<Point> parent;   ///< what this branch began with; also a step of another job
  BranchStart start;
  double time = 0;  ///< when the branch began, in seconds since 1970

  bool is_known() const { return !job.empty(); }
  /// The place of `branch` in the sequence of branches that lead to this one, if its step `step`
  /// is among the steps that this branch descends from or consists of.
  std::optional<size_t> place_of(int64_t branch, int64_t step) const;
};

/// {"version": 1, "job", "branch", "ancestors", "parent", "start", "time"}; what is not there is
/// left out.
TITAN_API Value to_value(const Lineage& lineage);
/// Throws a data Error for a missing member, one of a wrong type and a newer version.
TITAN_API Lineage parse_lineage(const Members& members);

}  // namespace titan
