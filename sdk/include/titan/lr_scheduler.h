// Plugin kind `lr_scheduler`: the learning rate as a function of the step. No torch.
#pragma once

#include <cstdint>

#include <titan/export.h>

namespace titan {

struct LrSchedulerContext {
  int64_t training_steps = 0;  ///< [training] steps
};

/// A pure function of the step: nothing to save, nothing to restore.
class TITAN_API LrScheduler {
 public:
  static constexpr const char* kKind = "lr_scheduler";
  using Interface = LrScheduler;
  using Context = LrSchedulerContext;

  virtual ~LrScheduler();
  /// [trainer thread] Factor on the base learning rate at training step `step`, counted from 1.
  virtual double factor(int64_t step) const = 0;
};

}  // namespace titan
