// Reads and completes the text part of a Llama 4 config.json of transformers. Used by exchange.cpp.
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

/// Returns `config` of a text model, or the text_config of a model that also reads images; nothing
/// for other kinds of models.
std::optional<Value> text_config_of(const Value& config);

/// `text` with defaults for everything that it lacks (Llama4TextConfig): those of `keys`, and the
/// lists by layer moe_layers, no_rope_layers and layer_types. Settings without effect become null:
/// attention_chunk_size if no layer has chunks shorter than the context length, the temperature if
/// no layer uses it.
Value completed(const Value& text, const std::vector<models::HfKey>& keys);

/// Sets the options of [model] that choose the kind of each layer, as far as options can express
/// them. `text` is completed.
void read_layers(const Value& text, Value& options);

/// Lists by layer, in the format of transformers: 1 for a layer with positions.
Value no_rope_layers(const Llama4Options& options);
Value moe_layers(const Llama4Options& options);
/// "chunked_attention" or "full_attention".
Value layer_types(const Llama4Options& options);

}  // namespace titan::llama4
