// Finds the operation of the backward that yields NaN and the layer whose forward recorded it:
// [debug] detect_anomaly.
#pragma once

#include <string>

#include <titan/model.h>
#include <titan/transform.h>

namespace titan::debugging {

/// LibTorch's anomaly mode around forward and backward of every step. A gradient with a NaN ends
/// the run with a data Error that names the operation and the path of the module that recorded it.
/// Any other error of a backward gets that path as context. Slow, because it checks the gradients
/// of each operation. One at a time per process. Thread: trainer thread, and the one that runs the
/// backward.
class AnomalyDetection final : public ExecutorWrapper {
 public:
  AnomalyDetection();
  ~AnomalyDetection() override;

  /// [after all transforms] Wraps modules to track which one runs. `part` must not run after this
  /// is destroyed.
  void attach(ModelPart& part);
  bool undoes_steps() const override { return false; }
  StepLoss forward_backward(const StepBatches& batches) override;
};

}  // namespace titan::debugging
