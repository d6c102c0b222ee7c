// Gradients that need no reduction over ranks. Used by data parallelism of one rank, and where
// there is none.
#pragma once

#include <memory>
#include <vector>

#include <titan/transform.h>

namespace titan {

/// The gradient of a parameter is complete when the last microbatch of the step has added to it.
class TITAN_API LocalGradients final : public GradientReducer {
 public:
  /// Those that are frozen or left to an owner are left alone. Parameters keep what they need of this: it may
  /// end before them.
  explicit LocalGradients(const std::vector<nn::Parameter*>& parameters);
  ~LocalGradients() override;
  void begin_step() override {}
  void start_microbatch(bool is_last) override { *is_last_ = is_last; }
  void finish_gradients() override {}

 private:
  std::shared_ptr<bool> is_last_ = std::make_shared<bool>(false);  // with the hooks of parameters
};

}  // namespace titan
