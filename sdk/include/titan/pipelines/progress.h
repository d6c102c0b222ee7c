// What has been done of a pipeline's table so far, and what an action still waits for. Used by
// validation, lowering and analysis, so that all three mean the same by "can start".
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
  /// What the action needs and is not there yet, the first that is missing; nothing when it can
  /// start. The gradient from the next stage is named as its B, though an I gives it as well.
  std::optional<PipelineAction> awaited(const PipelineAction& action) const;
  /// The same for the action at `at` of a rank's list with the one that it overlaps: both start
  /// together.
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

/// How many actions start together at `at` of a rank's list: 1, or 2 when they overlap.
inline size_t num_together(const std::vector<PipelineAction>& list, size_t at) {
  return list[at].overlaps_next && at + 1 < list.size() ? 2 : 1;
}

}  // namespace titan
