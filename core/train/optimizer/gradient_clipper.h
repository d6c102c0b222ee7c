// Measures and clips the gradients of a step: [training] max_norm. A member of a step.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>

#include "core/train/optimizer/device_scalars.h"
#include "core/train/optimizer/optimizer_step.h"

namespace titan::core {

/// See clip_gradients; also divides by the step's gradient scale. References outlive this. `held`:
/// receives the norm of steps whose numbers stay on the device; null: every norm is read. `update`:
/// multiplies the gradients in place of this member, if its optimizer can; null if other members
/// read them later.
class GradientClipper final : public StepMember {
 public:
  GradientClipper(ModelPart& part, const dist::Mesh& mesh, c10::Device device, double max_norm,
                  DeviceScalars* held = nullptr, OptimizerStep* update = nullptr)
      : part_(part),
        mesh_(mesh),
        device_(device),
        max_norm_(max_norm),
        held_(held),
        update_(update) {}
  void reduced(Step& step) override;

 private:
  void measure_for_update(Step& step);

  ModelPart& part_;
  const dist::Mesh& mesh_;
  c10::Device device_;
  double max_norm_;
  DeviceScalars* held_;
  OptimizerStep* update_;
};

}  // namespace titan::core
