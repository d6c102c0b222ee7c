// Logger `activation_statistics`: how large the outputs of modules are. Writes nothing itself: its
// numbers go to the loggers that do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/observe.h>

namespace titan::loggers {

struct ActivationStatisticsOptions {
  std::vector<std::string> modules = {"layers.*.attention",  // patterns of their paths
                                      "layers.*.feed_forward"};
  int64_t every = 10;  // steps
};

/// Of the output y of each module, over all tokens of the step: "activations/rms/<path>" = √ mean
/// y², "activations/max/<path>" = max |y|, "activations/zeros/<path>" = the share that is 0, and
/// "activations/not_finite/<path>", the share that is NaN or infinite, which the others leave out.
/// Under tensor parallelism a row-wise layer (wo, w2) gives parts of sums, which are looked at as
/// they are.
class ActivationStatistics final : public Logger, public TensorObserver {
 public:
  ActivationStatistics(const ActivationStatisticsOptions& options, LoggerContext)
      : options_(options) {}

  std::vector<Observation> observations() const override;
  std::vector<ObservedNumber> observe(const ObservedTensors& seen) override;

  void start(const RunInfo&) override {}
  void log(int64_t, std::span<const Scalar>) override {}
  void finish(RunOutcome) noexcept override {}

 private:
  ActivationStatisticsOptions options_;
};

}  // namespace titan::loggers
