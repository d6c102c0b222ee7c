// Compares the model options of a checkpoint with those of this run, since shapes do not reveal the
// number of heads, an epsilon or rotary positions. Used before Titan's checkpoints are loaded or
// exported.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/value.h>

#include "core/config/schema/job_config.h"
#include "core/plugin/registry.h"

namespace titan::core {

/// A model of these options; null if it cannot be made.
std::unique_ptr<Model> try_model(Registry& registry, const std::string& name, const Value& options,
                                 int64_t seq_len);

/// "model.n_heads is 8 there and 4 here", for every option of the model that changes results, and
/// for options of converters that change exported weights. HfExchange determines which options
/// change results; for a model without it, all do. `saved`: the configuration in the checkpoint's
/// manifest; `model`: this run's.
std::vector<std::string> model_differences(const Value& saved, const JobConfig& config,
                                           const Model& model, Registry& registry);

/// Throws a config Error that lists the differences. If [checkpoint] take_on_trust has
/// "model_options", returns the text for a warning instead; empty: no differences. `place` names
/// the checkpoint.
std::string check_model_options(const Value& saved, const JobConfig& config, const Model& model,
                                Registry& registry, const std::string& place);

/// Differences between the loss of `saved` and this configuration's, one line each: another loss,
/// or other options.
std::vector<std::string> loss_differences(const Value& saved, const JobConfig& config,
                                          Registry& registry);

}  // namespace titan::core
