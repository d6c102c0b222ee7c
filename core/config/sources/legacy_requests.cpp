#include "core/config/sources/legacy_requests.h"

#include <algorithm>
#include <optional>

namespace titan::core {
namespace {

/// The layers of a model in order, by torchtitan v0.2.2's names; absent when the model has no
/// option n_layers.
std::optional<std::vector<std::string>> layer_names(const Value& model_options) {
  const Value* count = model_options.find("n_layers");
  if (!count || !count->is_integer()) return std::nullopt;
  std::vector<std::string> names = {"tok_embeddings"};
  for (int64_t i = 0; i < count->as_integer(); ++i) names.push_back("layers." + std::to_string(i));
  names.insert(names.end(), {"norm", "output"});
  return names;
}

/// Splits the layers into parts; each of `points` is the first module of a new part.
Value parts_from(const std::vector<std::string>& layers, const Value& points,
                 const Setting& setting, Diagnostics& diagnostics) {
  Value::List parts;
  Value::List part;
  size_t next = 0;
  for (const std::string& layer : layers) {
    if (next < points.as_list().size() && points.as_list()[next] == Value(layer)) {
      parts.emplace_back(std::move(part));
      part.clear();
      ++next;
    }
    part.emplace_back(layer);
  }
  parts.emplace_back(std::move(part));
  if (next == points.as_list().size()) return parts;
  diagnostics.error(setting.where, "'" + dotted(setting.path) + "' names " +
                                       to_json(points.as_list()[next]) +
                                       ", which is not a layer of this model, or is out of order");
  return {};
}

/// Sets the new key unless it is given already; two different values in one source are an error.
void put(const Setting& setting, std::string_view new_key, Value value, GivenValues& given,
         Diagnostics& diagnostics) {
  const Given* known = given.find(new_key);
  if (!known) {
    given.put(split_dotted(new_key), {std::move(value), setting.key, setting.where, true});
    return;
  }
  const bool is_overruled = setting.where.source->is_file && !known->where.source->is_file;
  if (known->value == value || is_overruled || !known->is_valid) return;
  diagnostics.error(setting.where,
                    "'" + dotted(setting.path) + "' and '" + std::string(new_key) +
                        "' are both set and differ: " + to_json(value) + " and " +
                        to_json(known->value) + " (" + known->where.to_string() + ")",
                    "remove " + dotted(setting.path));
}

}  // namespace

void append_old_converters(const std::vector<OldRequest>& requests, GivenValues& given) {
  constexpr std::string_view kFloat8 = "quantize.linear.float8";
  for (const auto& [how, setting] : requests) {
    if (how != Translation::append_float8) continue;
    if (setting.value == Value(false) || setting.value == Value("")) continue;
    Given converters{Value::list(), setting.key, setting.where, true};
    if (const Given* known = given.find("model.converters")) converters = *known;
    if (!converters.is_valid) continue;
    Value::List& names = converters.value.as_list();
    const bool is_there = std::any_of(names.begin(), names.end(), [&](const Value& name) {
      return current_converter_name(name.as_string()) == kFloat8;
    });
    if (!is_there) names.emplace_back(kFloat8);
    given.put({"model", "converters"}, std::move(converters));
  }
}

std::string flavor_for_old_attention(const std::vector<OldRequest>& requests,
                                     const std::string& model, std::string flavor,
                                     ComponentLookup& lookup, Diagnostics& diagnostics) {
  for (const auto& [how, setting] : requests) {
    if (how == Translation::flex_attention && setting.value.as_boolean()) {
      std::string ignored, found;
      for (const char* ending : {"_flex", "_flex_attn"})
        if (lookup.flavor(model, flavor + ending, ignored)) found = flavor + ending;
      if (found.empty())
        diagnostics.not_built(setting.where, "model '" + model + "' has no flavor '" + flavor +
                                                 "_flex' for model.use_flex_attn");
      else
        flavor = found;
    }
  }
  return flavor;
}

void translate_old_mask(const std::vector<OldRequest>& requests, GivenValues& given,
                        Diagnostics& diagnostics) {
  for (const auto& [how, setting] : requests) {
    if (how != Translation::attention_mask || setting.value == Value("causal")) continue;
    if (setting.value == Value("block_causal"))
      put(setting, "data.isolate_documents", true, given, diagnostics);
    else
      diagnostics.error(setting.where,
                        "model.attn_mask_type must be one of 'causal', 'block_causal', got " +
                            to_json(setting.value));
  }
}

void translate_old_pipeline(const std::vector<OldRequest>& requests, const Value& model_options,
                            int64_t local_batch_size, GivenValues& given,
                            Diagnostics& diagnostics) {
  for (const auto& [how, setting] : requests) {
    if (how == Translation::split_points && !setting.value.as_list().empty()) {
      const auto layers = layer_names(model_options);
      if (!layers) {
        diagnostics.error(setting.where,
                          "'" + dotted(setting.path) + "' cannot be translated for this model",
                          "use parallelism.module_fqns_per_model_part");
        continue;
      }
      Value parts = parts_from(*layers, setting.value, setting, diagnostics);
      if (!parts.is_null())
        put(setting, "parallelism.module_fqns_per_model_part", std::move(parts), given,
            diagnostics);
    }
    if (how == Translation::microbatches) {
      const int64_t count = setting.value.as_integer();
      if (count < 1 || local_batch_size % count != 0)
        diagnostics.error(
            setting.where,
            "'" + dotted(setting.path) + "' = " + std::to_string(count) +
                " does not divide training.local_batch_size = " + std::to_string(local_batch_size));
      else
        put(setting, "parallelism.pipeline_parallel_microbatch_size", local_batch_size / count,
            given, diagnostics);
    }
  }
}

}  // namespace titan::core
