// Gradients that need no reduction over ranks. Used by data parallelism over one rank, and by runs
// without data parallelism.
#pragma once

#include <memory>
#include <vector>

#include <titan/transform.h>

namespace titan {

/// A parameter's gradient is complete once the last microbatch of the step has added to it.
class TITAN_API LocalGradients final : public GradientReducer {
 public:
  /// Skips parameters that are frozen or have an owner. This object may be destroyed before the
  /// parameters.
  explicit LocalGradients(const std::vector<nn::Parameter*>& parameters);
  ~LocalGradients() override;
  void begin_step() override {}
  void start_microbatch(bool is_last) override { *is_last_ = is_last; }
  void finish_gradients() override {}

 private:
  std::shared_ptr<bool> is_last_ = std::make_shared<bool>(false);  // shared with parameters' hooks
};

}  // namespace titan
