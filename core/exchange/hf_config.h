// Compares the config.json of a Hugging Face folder with a model. Used before its weights are read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <titan/value.h>

namespace titan::core {

/// The members that would change results, as "rope_theta is 10000.0 there and 500000.0 here".
std::vector<std::string> hf_config_differences(const Value& ours, const Value& theirs);

/// `ours`: HfExchange::hf_config(). False when the folder has no config.json, so that only the
/// shapes of tensors can be compared.
///
/// Throws one config Error that lists every member that would change results (sizes, heads,
/// epsilon, rotary positions, tying, activation, quantisation) with both values. Takes the older
/// keys (rope_theta, rope_scaling) and those of transformers 5 (rope_parameters). A member that is
/// absent there has the value that transformers gives a Llama.
bool check_hf_config(const Value& ours, const std::filesystem::path& folder);

}  // namespace titan::core
