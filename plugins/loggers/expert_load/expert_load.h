// Logger `expert_load`: balance of the tokens over the experts of a mixture. It passes its numbers
// to the other loggers and writes no file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/observe.h>

namespace titan::loggers {

struct ExpertLoadOptions {
  std::vector<std::string> routers = {"layers.*.moe.router"};  // patterns of router paths
  int64_t every = 10;                                          // steps
  bool each_expert = false;
};

/// From the choices of each router, where <moe> is the path of the module that contains it:
/// "experts/max_over_mean/<moe>": tokens of the fullest expert over the mean of all, the maximum
/// over microbatches and ranks; "experts/idle/<moe>": share of experts without tokens in a rank's
/// microbatch, on average; with `each_expert` "experts/load/<moe>/<number>": tokens of that expert
/// over the mean of all, in the whole step.
class ExpertLoad final : public Logger, public TensorObserver {
 public:
  ExpertLoad(const ExpertLoadOptions& options, LoggerContext) : options_(options) {}

  std::vector<Observation> observations() const override;
  std::vector<ObservedNumber> observe(const ObservedTensors& seen) override;

  void start(const RunInfo&) override {}
  void log(int64_t, std::span<const Scalar>) override {}
  void finish(RunOutcome) noexcept override {}

 private:
  ExpertLoadOptions options_;
  std::map<std::string, int64_t> num_experts_;  // by router; used on the trainer thread only
};

}  // namespace titan::loggers
