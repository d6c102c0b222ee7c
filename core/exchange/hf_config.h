// Compares the config.json of a Hugging Face folder with a model. Used before its weights are read.
#pragma once

#include <filesystem>

#include <titan/hf_exchange.h>

namespace titan::core {

/// False when the folder has no config.json, so that only the shapes of tensors can be compared.
///
/// Throws one config Error that lists every member that would change results, as the model tells
/// them (HfExchange::config_differences).
bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder);

}  // namespace titan::core
