// Forward and backward of a step as one graph of the device: its host gives one piece of work
// instead of a thousand. Used by the executor that runs microbatches one after the other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <titan/device.h>
#include <titan/device_graphs.h>
#include <titan/model.h>
#include <titan/step.h>

namespace titan::core {

/// Records the first step that is like the one before it, and replays it for every step that is
/// like it: shapes, number of microbatches and of valid tokens. Steps that are not are left to the
/// caller. Thread: trainer thread.
class StepGraph {
 public:
  /// Runs microbatches that lie on the device forward and backward; gives the sum of their losses,
  /// one fp64 on the device. Gradients are those of the parameters.
  using Work = std::function<at::Tensor(const std::vector<Batch>&, int64_t num_valid_tokens)>;

  /// Steps that run as ever before one is recorded: caches, tables and libraries are filled by
  /// then.
  static constexpr int64_t kStepsBefore = 2;

  /// All outlive this.
  StepGraph(DeviceGraphs& graphs, ModelPart& part, c10::Device device)
      : graphs_(graphs), part_(part), device_(device) {}

  /// The sum of the losses, gradients in the parameters, the same bits as `work` gives; nothing
  /// where this step is not one that is replayed.
  std::optional<at::Tensor> run(const StepBatches& batches, const Work& work);

 private:
  bool is_like_recorded(const StepBatches& batches) const;
  bool record(const StepBatches& batches, const Work& work);
  at::Tensor replay(const StepBatches& batches);

  DeviceGraphs& graphs_;
  ModelPart& part_;
  c10::Device device_;
  bool is_given_up_ = false;
  int64_t num_alike_ = 0;      // steps in a row that are like the last one
  std::vector<Batch> inputs_;  // of the graph, once there is one; else of the last step, in shape
  int64_t num_valid_tokens_ = 0;
  at::Tensor sum_;
  std::vector<std::pair<nn::Parameter*, at::Tensor>> gradients_;
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace titan::core
