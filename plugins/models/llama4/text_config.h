// What the config.json of a Llama 4 says, in transformers' words. Used by exchange.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/models/hf_table.h>
#include <titan/value.h>

#include "options.h"

namespace titan::llama4 {

constexpr const char* kTextModel = "llama4_text";
constexpr const char* kModelWithImages = "llama4";

/// `config` where it is that of a text model, its text_config where it is that of a model which
/// sees images, too; none: another kind of model.
std::optional<Value> text_config_of(const Value& config);

/// `text` with everything that follows where it says nothing (Llama4TextConfig): what `keys` say of
/// absent ones, and by layer moe_layers, no_rope_layers and layer_types. What has no effect is
/// null: attention_chunk_size where no layer has chunks or none as short as the longest sequence,
/// the temperature where no layer has one.
Value completed(const Value& text, const std::vector<models::HfKey>& keys);

/// The options of [model] that say which layers are of which kind, as far as options can. `text` is
/// completed.
void read_layers(const Value& text, Value& options);

/// By layer, as transformers has them: 1 for a layer with positions.
Value no_rope_layers(const Llama4Options& options);
Value moe_layers(const Llama4Options& options);
/// "chunked_attention" or "full_attention".
Value layer_types(const Llama4Options& options);

}  // namespace titan::llama4
