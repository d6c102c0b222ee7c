// Records forward and backward of a step as one graph of the device, so that the host launches one
// graph instead of a thousand kernels. Used by the executor that runs microbatches one after the
// other.
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

/// Records a step once enough steps in a row were equal in shapes, number of microbatches and of
/// valid tokens. It replays the graph for every equal step; the caller runs the others. Thread:
/// trainer thread.
class StepGraph {
 public:
  /// Runs microbatches that are on the device forward and backward; returns the sum of their
  /// losses, one fp64 element on the device. The parameters hold the gradients.
  using Work = std::function<at::Tensor(const std::vector<Batch>&, int64_t num_valid_tokens)>;

  /// Equal steps that run without a graph before one is recorded; they fill caches, tables and
  /// libraries.
  static constexpr int64_t kStepsBefore = 2;

  /// All outlive this.
  StepGraph(DeviceGraphs& graphs, ModelPart& part, c10::Device device)
      : graphs_(graphs), part_(part), device_(device) {}

  /// The sum of the losses, with gradients in the parameters, the same bits as those of `work`;
  /// unset if this step is not replayed.
  std::optional<at::Tensor> run(const StepBatches& batches, const Work& work);

 private:
  bool is_like_recorded(const StepBatches& batches) const;
  bool record(const StepBatches& batches, const Work& work);
  at::Tensor replay(const StepBatches& batches);

  DeviceGraphs& graphs_;
  ModelPart& part_;
  c10::Device device_;
  bool is_given_up_ = false;
  int64_t num_alike_ = 0;      // consecutive steps equal to the last one
  std::vector<Batch> inputs_;  // of the graph, if recorded; else of the last step
  int64_t num_valid_tokens_ = 0;
  at::Tensor sum_;
  std::vector<std::pair<nn::Parameter*, at::Tensor>> gradients_;
  std::unique_ptr<DeviceGraph> graph_;
};

}  // namespace titan::core
