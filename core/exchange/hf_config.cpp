#include "core/exchange/hf_config.h"

#include <map>
#include <string>

#include <titan/error.h>

#include "core/base/file.h"

namespace titan::core {
namespace {

/// A member that changes results.
struct Member {
  const char* key;
  Value absent;  ///< what transformers takes when config.json does not say; null: nothing
};

const std::vector<Member>& members() {
  static const std::vector<Member> kMembers = {
      {"model_type", {}},
      {"hidden_size", {}},
      {"intermediate_size", {}},
      {"num_hidden_layers", {}},
      {"num_attention_heads", {}},
      {"num_key_value_heads", {}},
      {"head_dim", {}},
      {"vocab_size", {}},
      {"rms_norm_eps", 1e-6},
      {"tie_word_embeddings", false},
      {"hidden_act", "silu"},
      {"attention_bias", false},
      {"mlp_bias", false},
      {"quantization_config", {}},
      {"rope_theta", 10000.0},
      {"rope_type", "default"},
      {"factor", {}},
      {"low_freq_factor", {}},
      {"high_freq_factor", {}},
      {"original_max_position_embeddings", {}},
      {"partial_rotary_factor", 1.0},
  };
  return kMembers;
}

/// Everything that says how positions are rotated, out of whichever table holds it, as members of
/// the configuration itself.
void flatten_rope(Value& config) {
  Value rope = Value::map();
  for (const char* table : {"rope_scaling", "rope_parameters"})
    if (const Value* found = config.find(table); found && found->is_map())
      for (const auto& [key, value] : found->as_map())
        rope[key == "type" ? "rope_type" : key] = value;
  const Value* type = rope.find("rope_type");
  const Value* factor = rope.find("factor");
  const bool scales =
      type && *type != Value("default") &&
      !(*type == Value("llama3") && factor && factor->is_number() && factor->as_number() == 1);
  for (const auto& [key, value] : rope.as_map())
    if (scales || key == "rope_theta" || key == "partial_rotary_factor") config[key] = value;
}

/// The members as transformers would see them. Members that are absent stay null.
std::map<std::string, Value> effective(Value config) {
  flatten_rope(config);
  std::map<std::string, Value> values;
  for (const Member& member : members()) {
    const Value* found = config.find(member.key);
    values[member.key] = found && !found->is_null() ? *found : member.absent;
  }
  const Value &heads = values["num_attention_heads"], &width = values["hidden_size"];
  if (values["num_key_value_heads"].is_null()) values["num_key_value_heads"] = heads;
  if (values["head_dim"].is_null() && heads.is_integer() && width.is_integer() &&
      heads.as_integer() > 0)
    values["head_dim"] = width.as_integer() / heads.as_integer();
  return values;
}

bool is_equal(const Value& a, const Value& b) {
  return a.is_number() && b.is_number() ? a.as_number() == b.as_number() : a == b;
}

std::string shown(const Value& value) {
  return value.is_null() ? "not set" : value.is_map() ? "set" : to_json(value);
}

}  // namespace

std::vector<std::string> hf_config_differences(const Value& ours, const Value& theirs) {
  auto own = effective(ours), other = effective(theirs);
  std::vector<std::string> differences;
  for (const Member& member : members())
    if (!is_equal(own[member.key], other[member.key]))
      differences.push_back(std::string(member.key) + " is " + shown(other[member.key]) +
                            " there and " + shown(own[member.key]) + " here");
  return differences;
}

bool check_hf_config(const Value& ours, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  if (!std::filesystem::is_regular_file(path)) return false;
  const Value config = read_json(path);
  TITAN_CHECK(config.is_map(), data, path.string(), " is not a map");
  std::string differences;
  for (const std::string& line : hf_config_differences(ours, config)) differences += "\n  " + line;
  TITAN_CHECK(differences.empty(), config, path.string(),
              " describes another model than [model]:", differences,
              "\n  choose the model.flavor of these weights, or set the model's options: titan "
              "describe model");
  return true;
}

}  // namespace titan::core
