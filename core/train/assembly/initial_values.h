// Initial values for the parameters that a start point does not hold. Used by assembly and by
// resume.h, which loads the others.
#pragma once

#include <set>
#include <string>

#include "core/checkpoint/start_point.h"
#include "core/config/schema/job_config.h"
#include "core/exchange/weight_names.h"
#include "core/train/assembly/run.h"

namespace titan::core {

/// Whether an export merges this parameter into others, so that other programs do not have it.
bool is_absorbed(const Run& run, const std::string& parameter);

/// The names of parameters in the weights that the run starts from.
WeightNames names_at(const Run& run, const StartPoint& start, const std::string& model_name);

/// Module states that weights of other programs do not hold.
std::set<std::string> states_left_initial(const Run& run, const StartPoint& start);

/// Parameters and states that keep their initial values when `start`, which holds weights, is
/// loaded: absorbed parameters, unless `start` holds one of them, and missing states.
std::set<std::string> left_initial(const Run& run, const StartPoint& start);

/// Allocates the weights; gives initial values to those that are not stored.
void initialize_or_allocate(Run& run, const StartPoint& start, const JobConfig& config);

}  // namespace titan::core
