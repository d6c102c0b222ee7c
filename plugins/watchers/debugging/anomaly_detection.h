// Checks each operation of the backward and names the layer whose forward recorded the one that
// fails: [debug] detect_anomaly.
#pragma once

#include <string>

#include <titan/model.h>
#include <titan/transform.h>

namespace titan::debugging {

/// LibTorch's anomaly mode around forward and backward of every step: a gradient with a NaN ends
/// the run by a data Error that names the operation and the path of the module that ran when it was
/// recorded; any other error of a backward gets that path as context. Slow: each operation's
/// gradients are looked at. One at a time in a process. Thread: trainer thread, and the one that
/// runs the backward.
class AnomalyDetection final : public ExecutorWrapper {
 public:
  AnomalyDetection();
  ~AnomalyDetection() override;

  /// [after all transforms] Learns which module runs. `part` does not run after this is gone.
  void attach(ModelPart& part);
  bool undoes_steps() const override { return false; }
  StepLoss forward_backward(const StepBatches& batches) override;
};

}  // namespace titan::debugging
