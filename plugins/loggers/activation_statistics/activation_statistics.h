// Logger `activation_statistics`: magnitude, zeros and non-finite values of modules' outputs. It
// passes these numbers to the other loggers and writes no file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/observe.h>

namespace titan::loggers {

struct ActivationStatisticsOptions {
  std::vector<std::string> modules = {"layers.*.attention",  // patterns of module paths
                                      "layers.*.feed_forward"};
  int64_t every = 10;  // steps
};

/// For the output y of each module, over all tokens of the step: "activations/rms/<path>" = √ mean
/// y², "activations/max/<path>" = max |y|, "activations/zeros/<path>" = share of zeros, and
/// "activations/not_finite/<path>" = share of NaN or infinite elements, which the others leave out.
/// Under tensor parallelism the output of a row-wise layer (wo, w2) is a partial sum, and the
/// statistics are of the partial sums.
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
