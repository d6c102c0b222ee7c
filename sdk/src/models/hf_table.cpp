#include <titan/models/hf_table.h>

#include <algorithm>
#include <utility>

namespace titan::models {
namespace {

Value in_one_way(const HfTable& table, Value config) {
  return table.in_one_way ? table.in_one_way(std::move(config)) : config;
}

std::vector<HfMember> members_of(const HfTable& table) {
  std::vector<HfMember> members = {{"model_type"}};
  for (const auto* keys : {&table.keys, &table.rope.keys})
    for (const HfKey& key : *keys)
      if (key.use != HfKey::written_only) members.push_back({key.key, key.absent});
  members.insert(members.end(), table.rope_members.begin(), table.rope_members.end());
  return members;
}

/// `path` has a dot if the option is in a table.
void set_option(Value& options, const std::string& path, Value value) {
  const size_t dot = path.find('.');
  if (dot == std::string::npos)
    options[path] = std::move(value);
  else
    set_option(options[path.substr(0, dot)], path.substr(dot + 1), std::move(value));
}

void read_keys(const std::vector<HfKey>& keys, const Value& config, Value& options) {
  for (const HfKey& key : keys) {
    if (key.option.empty()) continue;
    Value value = hf_value(config, key.key.c_str(), key.follows ? Value() : key.absent);
    if (!value.is_null()) set_option(options, key.option, std::move(value));
  }
}

}  // namespace

HfKey hf_fixed(std::string key, Value value) {
  return {.key = std::move(key), .ours = value, .absent = value};
}

HfKey hf_written(std::string key, Value value) {
  return {.key = std::move(key), .ours = std::move(value), .use = HfKey::written_only};
}

HfKey hf_compared(std::string key, Value absent) {
  return {.key = std::move(key), .absent = std::move(absent), .use = HfKey::compared_only};
}

Value HfRope::written() const {
  Value table = Value::map({{type_key, type}});
  for (const HfKey& key : keys) table[key.key] = key.ours;
  return table;
}

Value hf_config(const HfTable& table) {
  Value config = Value::map();
  for (const HfKey& key : table.keys)
    if (key.use != HfKey::compared_only) config[key.key] = key.ours;
  return config;
}

std::optional<Value> hf_options(const HfTable& table, const Value& theirs) {
  const Value type = hf_value(theirs, "model_type");
  const auto& known = table.model_types;
  if (std::none_of(known.begin(), known.end(),
                   [&](const std::string& name) { return type == Value(name); }))
    return std::nullopt;
  const Value config = hf_flattened_rope(in_one_way(table, theirs));
  Value options = Value::map();
  read_keys(table.keys, config, options);
  if (hf_value(config, "rope_type") == Value(table.rope.type))
    read_keys(table.rope.keys, config, options);
  if (table.also_read) table.also_read(config, options);
  return options;
}

std::vector<std::string> hf_differences(const HfTable& table, const Value& theirs) {
  return hf_config_differences(members_of(table), in_one_way(table, hf_config(table)),
                               in_one_way(table, theirs));
}

Value hf_value(const Value& config, const char* key, Value absent) {
  const Value* found = config.find(key);
  return found && !found->is_null() ? *found : absent;
}

Value hf_quotient(const Value& config, const char* dividend, const char* divisor) {
  const Value above = hf_value(config, dividend), below = hf_value(config, divisor);
  const bool is_known = above.is_integer() && below.is_integer() && below.as_integer() > 0;
  return is_known ? Value(above.as_integer() / below.as_integer()) : Value();
}

}  // namespace titan::models
