// Serializes the protobuf records of a .wandb file. Used by the wandb logger.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/value.h>

#include "wandb_options.h"

namespace titan::loggers {

/// A key and its value as JSON, where NaN and infinities are the words NaN, Infinity and -Infinity,
/// as wandb itself writes them.
using WandbItem = std::pair<std::string, std::string>;

std::string wandb_number(double value);

/// Each function returns one serialized message `Record`. `number` counts the records of a file,
/// from 1; times are seconds.

/// Identity and configuration of the run. `config`: a map whose members are the keys of the run's
/// config. `start_time`: since 1970. `resumes`: asks the server for the number of existing rows
/// with this id; new rows follow them.
std::string wandb_run_record(int64_t number, const WandbSettings& settings, const Value& config,
                             const std::string& host, double start_time, bool resumes);
/// The history row of `step`.
std::string wandb_history_record(int64_t number, int64_t step, const std::vector<WandbItem>& items);
/// New last values of the run; others are kept.
std::string wandb_summary_record(int64_t number, const std::vector<WandbItem>& items);
/// The run ended. A run without this record counts as crashed.
std::string wandb_exit_record(int64_t number, int exit_code, double runtime);

}  // namespace titan::loggers
