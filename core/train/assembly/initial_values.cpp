#include "core/train/assembly/initial_values.h"

#include <algorithm>

#include "core/train/assembly/run_dtypes.h"

namespace titan::core {

bool is_absorbed(const Run& run, const std::string& parameter) {
  return std::any_of(run.exports.begin(), run.exports.end(), [&](const ExportTransform* exports) {
    return exports->is_absorbed(parameter);
  });
}

WeightNames names_at(const Run& run, const StartPoint& start, const std::string& model_name) {
  return start.kind == StartPoint::Kind::hugging_face
             ? names_of(*run.model, model_name, Naming::hugging_face)
             : own_names(*run.part);
}

std::set<std::string> states_left_initial(const Run& run, const StartPoint& start) {
  if (start.is_own) return {};
  return missing_states(*run.part, names_at(run, start, ""), start.index);
}

std::set<std::string> left_initial(const Run& run, const StartPoint& start) {
  std::set<std::string> names;
  if (start.is_own) return names;
  for (const ParameterInfo& parameter : run.part->all_parameters())
    if (is_absorbed(run, parameter.name)) names.insert(parameter.name);
  const bool holds_one = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return start.index.tensors.contains(name);
  });
  if (holds_one) names.clear();
  names.merge(states_left_initial(run, start));
  return names;
}

void initialize_or_allocate(Run& run, const StartPoint& start, const JobConfig& config) {
  const c10::Device device = run.device->device();
  const at::ScalarType dtype = parameter_dtype(config);
  if (!start.loads_weights()) {
    run.part->materialize(device, dtype, run.seed);
    return;
  }
  const std::set<std::string> initial = left_initial(run, start);
  for (nn::Parameter* parameter : run.part->parameters())
    if (initial.contains(parameter->name()))
      parameter->materialize(device, dtype, run.seed);
    else
      parameter->allocate(device, dtype);
}

}  // namespace titan::core
