#include <titan/hf_config.h>

#include <optional>

namespace titan {
namespace {

/// JSON of other programs may have 10000 for 10000.0.
std::optional<double> as_number(const Value* value) {
  if (!value || !(value->is_integer() || value->is_number())) return std::nullopt;
  return value->as_number();
}

/// The member's value as transformers reads it.
Value effective(const HfMember& member, const Value& config) {
  const Value* found = config.find(member.name);
  if (found && !found->is_null()) return *found;
  return member.derived ? member.derived(config) : member.absent;
}

bool is_equal(const Value& a, const Value& b) {
  return a == b || (as_number(&a) && as_number(&a) == as_number(&b));
}

std::string shown(const Value& value) {
  return value.is_null() ? "not set" : value.is_map() ? "set" : to_json(value);
}

}  // namespace

Value hf_flattened_rope(Value config) {
  Value rope = Value::map();
  for (const char* table : {"rope_scaling", "rope_parameters"})
    if (const Value* found = config.find(table); found && found->is_map())
      for (const auto& [key, value] : found->as_map())
        rope[key == "type" ? "rope_type" : key] = value;
  const Value* type = rope.find("rope_type");
  const Value* factor = rope.find("factor");
  const bool scales =
      type && *type != Value("default") && !(*type == Value("llama3") && as_number(factor) == 1.0);
  for (const auto& [key, value] : rope.as_map())
    if (scales || key == "rope_theta" || key == "partial_rotary_factor") config[key] = value;
  return config;
}

std::vector<HfMember> hf_rope_members() {
  return {{"rope_theta", 10000.0}, {"rope_type", "default"}, {"factor"},
          {"low_freq_factor"},     {"high_freq_factor"},     {"original_max_position_embeddings"},
          {"beta_fast", 32.0},     {"beta_slow", 1.0},       {"mscale"},
          {"mscale_all_dim"},      {"attention_factor"},     {"partial_rotary_factor", 1.0}};
}

std::vector<std::string> hf_config_differences(const std::vector<HfMember>& members,
                                               const Value& ours, const Value& theirs) {
  const Value own = hf_flattened_rope(ours), other = hf_flattened_rope(theirs);
  std::vector<std::string> differences;
  for (const HfMember& member : members) {
    const Value here = effective(member, own), there = effective(member, other);
    if (!is_equal(here, there))
      differences.push_back(member.name + " is " + shown(there) + " there and " + shown(here) +
                            " here");
  }
  return differences;
}

}  // namespace titan
