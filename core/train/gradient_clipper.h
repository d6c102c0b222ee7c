// Measures and clips the gradients of a step: [training] max_norm. A member of a step.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/model.h>
#include <titan/step.h>

namespace titan::core {

/// See clip_gradients; takes the step's gradient scale out again. References outlive this.
class GradientClipper final : public StepMember {
 public:
  GradientClipper(ModelPart& part, const dist::Mesh& mesh, c10::Device device, double max_norm)
      : part_(part), mesh_(mesh), device_(device), max_norm_(max_norm) {}
  void reduced(Step& step) override;

 private:
  ModelPart& part_;
  const dist::Mesh& mesh_;
  c10::Device device_;
  double max_norm_;
};

}  // namespace titan::core
