// Follows a simulated step through the layers: reports to MetaMemory which layer runs, and measures
// the memory that its forward keeps for its backward. Used by simulated_step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/dist/recorder.h>
#include <titan/model.h>
#include <titan/pipeline_schedule.h>

namespace titan::core {

/// Measurements of one layer.
struct WatchedLayer {
  std::string name;
  int stage = 0;            ///< of the pipeline; 0 without one
  int64_t parameters = 0;   ///< elements of this rank's shards; a tied one counts once
  int64_t kept_bytes = 0;   ///< by the last forward of one microbatch, for its backward
  bool has_memory = false;  ///< whether its forward has run
};

/// Wraps every layer of a part, outermost. Labels the gradients of parameters in MetaMemory.
class LayerWatch {
 public:
  /// `actions`: of this pipeline rank, null without a pipeline; the activity of `recorder` shows
  /// when the next action has begun. All outlive the part.
  LayerWatch(ModelPart& part, const dist::Recorder& recorder,
             const std::vector<PipelineAction>* actions);

  /// Restarts the count of microbatches.
  void start_step();
  const std::vector<WatchedLayer>& layers() const;

 private:
  struct State;
  static void watch_gradients(ModelPart& part);
  std::shared_ptr<State> state_;  // shared with the wrappers of the layers
};

}  // namespace titan::core
