// The watcher `debugging`: combines the tools of [debug].
#pragma once

#include <memory>
#include <vector>

#include <titan/watcher.h>

#include "anomaly_detection.h"
#include "bad_value_finder.h"
#include "module_watch.h"
#include "options.h"
#include "tensor_trace.h"

namespace titan::debugging {

class Debugging final : public Watcher {
 public:
  Debugging(const Options& options, WatcherContext context);

  /// config Error: a pattern matches nothing.
  void match(ModelPart& whole) override;
  void attach(ModelPart& part) override;
  std::vector<StepMember*> members() override;
  GradientReducer* follower() override { return &watch_; }
  ExecutorWrapper* wrapper() override { return anomalies_.get(); }
  void start(const WatcherStart& start) override;

 private:
  WatcherContext context_;
  ModuleWatch watch_;
  std::unique_ptr<BadValueFinder> finder_;
  std::unique_ptr<TensorTrace> trace_;
  std::unique_ptr<AnomalyDetection> anomalies_;
};

}  // namespace titan::debugging
