#include "text_config.h"

#include <algorithm>
#include <string>
#include <utility>

namespace titan::llama4 {
namespace {

constexpr const char* kChunked = "chunked_attention";
constexpr const char* kFull = "full_attention";

const Value* given(const Value& map, const char* name) {
  const Value* found = map.find(name);
  return found && !found->is_null() ? found : nullptr;
}
int64_t integer(const Value& map, const char* name, int64_t absent) {
  const Value* found = given(map, name);
  return found && found->is_integer() ? found->as_integer() : absent;
}
/// The list under `name`, or null.
const Value* given_list(const Value& map, const char* name) {
  const Value* found = given(map, name);
  return found && found->is_list() ? found : nullptr;
}

template <class Item>
Value by_layer(int64_t n_layers, const Item& item) {
  Value list = Value::list();
  for (int64_t i = 0; i < n_layers; ++i) list.as_list().push_back(item(i));
  return list;
}
/// The layers for which `holds`.
template <class Holds>
Value layers_where(int64_t n_layers, const Holds& holds) {
  Value list = Value::list();
  for (int64_t i = 0; i < n_layers; ++i)
    if (holds(i)) list.as_list().emplace_back(i);
  return list;
}
Value every_layer(int64_t n_layers, int64_t step) {
  return layers_where(n_layers, [&](int64_t i) { return (i + 1) % step == 0; });
}

void complete_sizes(Value& text, const std::vector<models::HfKey>& keys) {
  const bool is_null_heads =
      text.find("num_key_value_heads") && text.at("num_key_value_heads").is_null();
  const bool is_null_width = text.find("head_dim") && text.at("head_dim").is_null();
  for (const models::HfKey& key : keys)
    if (!key.absent.is_null() && !given(text, key.key.c_str())) text[key.key] = key.absent;
  const int64_t heads = integer(text, "num_attention_heads", 40);
  if (is_null_heads) text["num_key_value_heads"] = heads;
  if (is_null_width)
    text["head_dim"] = integer(text, "hidden_size", 5120) / std::max<int64_t>(heads, 1);
}

/// By layer: 1 with positions, 0 without.
Value positions_by_layer(const Value& text, int64_t n_layers) {
  const int64_t interval = std::max<int64_t>(integer(text, "no_rope_layer_interval", 4), 1);
  const Value* given = given_list(text, "no_rope_layers");
  const bool is_given = given && !given->as_list().empty();
  return by_layer(n_layers, [&](int64_t i) {
    if (!is_given) return Value((i + 1) % interval != 0 ? 1 : 0);
    const auto& layers = given->as_list();
    const Value of_layer =
        static_cast<size_t>(i) < layers.size() ? layers[static_cast<size_t>(i)] : 0;
    return Value(of_layer == Value(0) || of_layer == Value(false) ? 0 : 1);
  });
}

void complete_layers(Value& text) {
  const int64_t n = integer(text, "num_hidden_layers", 48);
  const Value positions = positions_by_layer(text, n);
  text["no_rope_layers"] = positions;

  const int64_t step = std::max<int64_t>(integer(text, "interleave_moe_layer_step", 1), 1);
  if (!given_list(text, "moe_layers")) text["moe_layers"] = every_layer(n, step);

  const Value chunk = text.find("attention_chunk_size") ? text.at("attention_chunk_size") : 8192;
  const bool cuts =
      chunk.is_integer() && chunk.as_integer() < integer(text, "max_position_embeddings", 131072);
  if (!cuts || !given_list(text, "layer_types"))
    text["layer_types"] = by_layer(n, [&](int64_t i) {
      const bool has_positions = positions.as_list()[static_cast<size_t>(i)] != Value(0);
      return Value(cuts && has_positions ? kChunked : kFull);
    });
  const auto& types = text.at("layer_types").as_list();
  const bool has_chunks = std::find(types.begin(), types.end(), Value(kChunked)) != types.end();
  text["attention_chunk_size"] = has_chunks ? chunk : Value();
}

void complete_temperature(Value& text) {
  Value& tuning = text["attn_temperature_tuning"];
  if (tuning.is_integer()) tuning = tuning != Value(0);  // an integer in early files
  const auto& positions = text.at("no_rope_layers").as_list();
  if (std::find(positions.begin(), positions.end(), Value(0)) == positions.end()) tuning = false;
  if (tuning == Value(true)) return;
  text["floor_scale"] = Value();
  text["attn_scale"] = Value();
}

/// Sets every_n_layers_nope and nope_layer_offset. Sets nothing if all layers have positions, or if
/// no such pair describes them.
void set_positions(const Value& text, int64_t n_layers, Value& options) {
  const Value& positions = text.at("no_rope_layers");
  const auto& layers = positions.as_list();
  const auto first = std::find(layers.begin(), layers.end(), Value(0));
  if (first == layers.end()) return;
  const auto second = std::find(first + 1, layers.end(), Value(0));
  const int64_t offset = first - layers.begin(),
                every = second == layers.end() ? n_layers : second - first;
  if (positions !=
      by_layer(n_layers, [&](int64_t i) { return Value(i % every == offset ? 0 : 1); }))
    return;
  options["every_n_layers_nope"] = every;
  options["nope_layer_offset"] = offset;
}

/// Sets nothing if no step describes the layers with experts.
void set_mixtures(const Value& text, int64_t n_layers, Value& options) {
  const Value& layers = text.at("moe_layers");
  const bool has_any = !layers.as_list().empty() && layers.as_list().front().is_integer();
  const int64_t step = has_any ? layers.as_list().front().as_integer() + 1 : n_layers + 1;
  if (step >= 1 && layers == every_layer(n_layers, step))
    options["interleave_moe_layer_step"] = step;
}

}  // namespace

std::optional<Value> text_config_of(const Value& config) {
  const Value* type = config.find("model_type");
  if (!type) return std::nullopt;
  if (*type == Value(kTextModel)) return config;
  if (*type != Value(kModelWithImages)) return std::nullopt;
  const Value* text = config.find("text_config");
  Value found = text && text->is_map() ? *text : Value::map();
  found["model_type"] = kTextModel;
  if (const Value* quantised = given(config, "quantization_config"))
    found["quantization_config"] = *quantised;
  return found;
}

Value completed(const Value& text, const std::vector<models::HfKey>& keys) {
  Value whole = text;
  complete_sizes(whole, keys);
  complete_layers(whole);
  complete_temperature(whole);
  return whole;
}

void read_layers(const Value& text, Value& options) {
  const int64_t n_layers = integer(text, "num_hidden_layers", 48);
  set_positions(text, n_layers, options);
  set_mixtures(text, n_layers, options);
  options["attention_chunk_size"] = integer(text, "attention_chunk_size", 0);
}

Value no_rope_layers(const Llama4Options& o) {
  return by_layer(o.n_layers, [&](int64_t i) { return Value(o.has_positions(i) ? 1 : 0); });
}
Value moe_layers(const Llama4Options& o) {
  return layers_where(o.n_layers, [&](int64_t i) { return o.has_experts(i); });
}
Value layer_types(const Llama4Options& o) {
  return by_layer(o.n_layers, [&](int64_t i) {
    return Value(o.has_positions(i) && o.chunk_size() > 0 ? kChunked : kFull);
  });
}

}  // namespace titan::llama4
