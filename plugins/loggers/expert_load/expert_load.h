// Logger `expert_load`: how evenly tokens go to the experts of a mixture. Writes nothing itself:
// its numbers go to the loggers that do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <titan/logger.h>
#include <titan/observe.h>

namespace titan::loggers {

struct ExpertLoadOptions {
  std::vector<std::string> routers = {"layers.*.moe.router"};  // patterns of their paths
  int64_t every = 10;                                          // steps
  bool each_expert = false;
};

/// Of what the routers choose, for the path <moe> of what holds the router:
/// "experts/max_over_mean/<moe>": tokens of the fullest expert over the mean of all, the greatest
/// of all microbatches and ranks; "experts/idle/<moe>": the share of experts that a microbatch of a
/// rank leaves without tokens, on average; and with `each_expert` "experts/load/<moe>/<number>":
/// tokens of that expert over the mean of all, in the whole step.
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
  std::map<std::string, int64_t> num_experts_;  // by router; used on the trainer thread alone
};

}  // namespace titan::loggers
