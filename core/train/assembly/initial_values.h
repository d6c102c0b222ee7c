// The values that a model begins with where nothing is stored for it. Used by assembly and by
// resume.h, which takes over the rest.
#pragma once

#include <set>
#include <string>

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/exchange/weight_names.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// Whether an export merges this parameter into others, which know nothing of it.
bool is_absorbed(const Run& run, const std::string& parameter);

/// Which parameters the weights that the run starts from hold, by name.
WeightNames names_at(const Run& run, const StartPoint& start, const std::string& model_name);

/// Of modules, that the weights of others do not hold.
std::set<std::string> states_left_initial(const Run& run, const StartPoint& start);

/// What `start`, which holds weights, leaves at its initial values: parameters that others know
/// nothing of, unless it holds one of them, and states that are not there.
std::set<std::string> left_initial(const Run& run, const StartPoint& start);

/// Memory for the weights; initial values where nothing is stored.
void give_values(Run& run, const StartPoint& start, const JobConfig& config);

}  // namespace titan::core
