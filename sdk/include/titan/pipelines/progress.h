// The finished actions of a pipeline's table, and the missing inputs of other actions. Used by
// validation, lowering and analysis, so that they agree on when an action can start.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <titan/pipeline_schedule.h>

#include <titan/export.h>

namespace titan {

/// Actions of a table whose indices are within `shape`; F, B, I and W only.
class TITAN_API Progress {
 public:
  explicit Progress(const PipelineShape& shape);

  void finish(const PipelineAction& action);
  /// The first missing input of the action; absent if it can start. A missing gradient from the
  /// next stage is reported as B, although I also produces it.
  std::optional<PipelineAction> awaited(const PipelineAction& action) const;
  /// The same for the action at `at` of a rank's list, together with the action that it overlaps:
  /// both start at the same time.
  std::optional<PipelineAction> awaited(const std::vector<PipelineAction>& list, size_t at) const;

 private:
  struct Done {
    bool output = false;      // F
    bool input_grad = false;  // B or I
  };
  Done& at(int stage, int microbatch);
  const Done& at(int stage, int microbatch) const;

  PipelineShape shape_;
  std::vector<Done> done_;  // by stage, then microbatch
};

/// Number of actions that start together at `at` of a rank's list: 1, or 2 if they overlap.
inline size_t num_together(const std::vector<PipelineAction>& list, size_t at) {
  return list[at].overlaps_next && at + 1 < list.size() ? 2 : 1;
}

}  // namespace titan
