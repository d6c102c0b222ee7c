#include "debugging.h"

#include <utility>

namespace titan::debugging {

Debugging::Debugging(const Options& options, WatcherContext context)
    : context_(std::move(context)) {
  const dist::Mesh& mesh = context_.mesh;
  if (options.find_nan)
    finder_ = std::make_unique<BadValueFinder>(mesh, context_.device.device(),
                                               context_.smallest_gradient_scale);
  if (!options.trace_tensors.empty()) trace_ = std::make_unique<TensorTrace>(options, mesh);
  if (options.detect_anomaly) anomalies_ = std::make_unique<AnomalyDetection>();
  if (trace_) watch_.add(*trace_);
  if (finder_) watch_.add(*finder_);
}

void Debugging::match(ModelPart& whole) {
  watch_.match(whole);
  if (trace_) trace_->check(watch_.names());
}

void Debugging::attach(ModelPart& part) {
  if (anomalies_) anomalies_->attach(part);
  if (finder_ || trace_) watch_.attach(part);
}

void Debugging::start(const WatcherStart& start) {
  if (trace_) trace_->start(context_.dump_folder, start.resumed_step, start.first_row);
}

/// The trace comes before the finder, which may repeat the step.
std::vector<StepMember*> Debugging::members() {
  std::vector<StepMember*> members;
  if (finder_ || trace_) members.push_back(&watch_);
  if (trace_) members.push_back(trace_.get());
  if (finder_) members.push_back(finder_.get());
  return members;
}

}  // namespace titan::debugging
