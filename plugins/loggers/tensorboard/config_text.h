// A run's configuration as TensorBoard shows it. Used by the tensorboard logger.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <titan/value.h>

#include "summary_proto.h"

namespace titan::loggers {

/// All of it as JSON, in Markdown.
std::string config_as_json(const Value& config);

/// Of each section its name and a Markdown table of its keys and values.
std::vector<std::pair<std::string, std::string>> config_as_tables(const Value& config);

/// What of it may change how a run learns or how fast it is: "optimizer.lr" and its like, without
/// the sections that say where things are written and looked at.
Hparams config_as_hparams(const Value& config);

}  // namespace titan::loggers
