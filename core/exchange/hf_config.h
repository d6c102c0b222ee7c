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

/// The config.json of an export of the model, but for token ids and the data type.
///
/// Where `assets`/config.json describes this model (same architecture, nothing that would change
/// results), it is that file: what Titan has no option for, such as max_position_embeddings, which
/// servers read, is kept. `quantization_config` goes: exports are not quantised. Otherwise
/// HfExchange::hf_config().
Value exported_hf_config(const HfExchange& exchange, const std::filesystem::path& assets);

}  // namespace titan::core
