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
/// Throws one config Error that lists every member that would change results, by
/// HfExchange::config_differences.
///
/// `make`: makes a model of the options of HfExchange::options_for; returns null if it cannot. If
/// that model differs too, no option helps, and a data Error lists the unsupported members.
bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     const std::function<std::unique_ptr<Model>(const Value& options)>& make = {});
/// The same, with `registry` making models of that name.
bool check_hf_config(const HfExchange& exchange, const std::filesystem::path& folder,
                     Registry& registry, const std::string& model, int64_t seq_len);

/// The config.json of an export of the model, without token ids and data type.
///
/// Where `assets`/config.json describes this model (same architecture, nothing that would change
/// results), it is that file, which keeps members without an option in Titan, such as
/// max_position_embeddings, which servers read. `quantization_config` is removed, because exports
/// are not quantised. Otherwise HfExchange::hf_config().
Value exported_hf_config(const HfExchange& exchange, const std::filesystem::path& assets);

}  // namespace titan::core
