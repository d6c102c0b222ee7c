#include "core/debug/step_debugging.h"

namespace titan::core {

bool debugs_steps(const DebugSection& options) {
  return options.find_nan || options.detect_anomaly || !options.trace_tensors.empty();
}

StepDebugging::StepDebugging(const DebugSection& options, const dist::Mesh& mesh,
                             c10::Device device, std::optional<double> smallest_scale) {
  if (options.find_nan) finder_ = std::make_unique<BadValueFinder>(mesh, device, smallest_scale);
  if (!options.trace_tensors.empty()) trace_ = std::make_unique<TensorTrace>(options, mesh);
  if (options.detect_anomaly) anomalies_ = std::make_unique<AnomalyDetection>();
  if (trace_) watch_.add(*trace_);
  if (finder_) watch_.add(*finder_);
}

void StepDebugging::match(ModelPart& whole) {
  watch_.match(whole);
  if (trace_) trace_->check(watch_.names());
}

void StepDebugging::attach(ModelPart& part) {
  if (anomalies_) anomalies_->attach(part);
  if (finder_ || trace_) watch_.attach(part);
}

StepExecutor& StepDebugging::around(StepExecutor& inner) {
  if (!anomalies_) return inner;
  anomalies_->wrap(inner);
  return *anomalies_;
}

void StepDebugging::start(const std::string& dump_folder, int64_t resumed_step, int64_t first_row) {
  if (trace_) trace_->start(dump_folder, resumed_step, first_row);
}

/// What is written down comes before it is told of a repetition.
std::vector<StepMember*> StepDebugging::members() {
  std::vector<StepMember*> members;
  if (finder_ || trace_) members.push_back(&watch_);
  if (trace_) members.push_back(trace_.get());
  if (finder_) members.push_back(finder_.get());
  return members;
}

}  // namespace titan::core
