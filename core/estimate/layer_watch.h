// Follows a simulated step through the layers: says which one runs, and what its forward leaves for
// its backward. Used by simulated_step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/dist/recorder.h>
#include <titan/model.h>
#include <titan/pipeline_schedule.h>

namespace titan::core {

/// What one layer showed.
struct WatchedLayer {
  std::string name;
  int stage = 0;            ///< of the pipeline; 0 without one
  int64_t parameters = 0;   ///< elements of this rank's shards; a tied parameter counts where it
                            ///< is met first
  int64_t kept_bytes = 0;   ///< by the last forward of one microbatch, for its backward
  bool has_memory = false;  ///< whether its forward has run
};

/// Goes around every layer of a part, outermost. Parameters that autograd reaches are told to
/// MetaMemory as gradients.
class LayerWatch {
 public:
  /// `actions`: of this pipeline rank, null without a pipeline; `recorder` says when another of
  /// them has begun. All outlive the part.
  LayerWatch(ModelPart& part, const dist::Recorder& recorder,
             const std::vector<PipelineAction>* actions);

  /// Microbatches are counted from here.
  void start_step();
  const std::vector<WatchedLayer>& layers() const;

 private:
  struct State;
  static void watch_gradients(ModelPart& part);
  std::shared_ptr<State> state_;  // shared with the layers' wrappers, which live as long as those
};

}  // namespace titan::core
