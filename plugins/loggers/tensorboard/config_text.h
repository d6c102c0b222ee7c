// Formats a run's configuration for TensorBoard. Used by the tensorboard logger.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <titan/value.h>

#include "summary_proto.h"

namespace titan::loggers {

/// The whole configuration as JSON, in Markdown.
std::string config_as_json(const Value& config);

/// For each section its name and a Markdown table of its keys and values.
std::vector<std::pair<std::string, std::string>> config_as_tables(const Value& config);

/// The keys that may affect learning or speed, such as "optimizer.lr"; without sections about
/// output and diagnostics.
Hparams config_as_hparams(const Value& config);

}  // namespace titan::loggers
