// Compares the options of the model that a checkpoint was saved with to those of this run: shapes
// do not tell a number of heads, an epsilon or rotary positions. Used before own checkpoints are
// loaded or exported.
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

/// A model of these options; null where there can be none.
std::unique_ptr<Model> try_model(Registry& registry, const std::string& name, const Value& options,
                                 int64_t seq_len);

/// "model.n_heads is 8 there and 4 here", for every option of the model that changes results, and
/// for those of converters that change what weights are for others. A model that tells how others
/// describe it (HfExchange) tells by that what changes results; of any other model every option
/// does. `saved`: the configuration in the checkpoint's manifest; `model`: this run's.
std::vector<std::string> model_differences(const Value& saved, const JobConfig& config,
                                           const Model& model, Registry& registry);

/// Throws a config Error that lists them. Where [checkpoint] take_on_trust has "model_options" it
/// returns the text instead, for a warning; empty: nothing differs. `place` names the checkpoint.
std::string check_model_options(const Value& saved, const JobConfig& config, const Model& model,
                                Registry& registry, const std::string& place);

/// How the loss that `saved` was trained with differs from this configuration's, a line each:
/// another loss, or other options. Empty: it does not.
std::vector<std::string> loss_differences(const Value& saved, const JobConfig& config,
                                          Registry& registry);

}  // namespace titan::core
