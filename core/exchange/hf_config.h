// Compares the config.json of a Hugging Face folder with a model. Used before its weights are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/plugin/registry.h"

namespace titan::core {

/// False when the folder has no config.json, so that only the shapes of tensors can be compared.
///
/// Throws one config Error that lists every member that would change results, as the model tells
/// them (HfExchange::config_differences).
///
/// `make`: the model of those options (HfExchange::options_for); null where there can be none.
/// Where that model differs too, no option mends it: a data Error lists what is not offered.
bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     const std::function<std::unique_ptr<Model>(const Value& options)>& make = {});
/// The same, with `registry` making models of that name.
bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     Registry& registry, const std::string& model, int64_t seq_len);

/// The config.json of an export of the model, but for token ids and the data type.
///
/// Where `assets`/config.json describes this model (same architecture, nothing that would change
/// results), it is that file: what Titan has no option for, such as max_position_embeddings, which
/// servers read, is kept. `quantization_config` goes: exports are not quantised. Otherwise
/// HfExchange::hf_config().
Value exported_hf_config(const HfExchange& exchange, const std::filesystem::path& assets);

}  // namespace titan::core
