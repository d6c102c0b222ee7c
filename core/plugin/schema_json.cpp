#include "core/plugin/schema_json.h"

#include <cmath>
#include <string>
#include <utility>

namespace titan::core {
namespace {

/// Bounds without a fraction print as integers.
Value json_number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::nearbyint(value) == value && std::fabs(value) <= kExact)
    return static_cast<int64_t>(value);
  return value;
}

Value::List types_of(const Option& option) {
  Value::List types;
  switch (option.type) {
    case OptionType::boolean:
      types = {"boolean"};
      break;
    case OptionType::integer:
      types = {"integer"};
      break;
    case OptionType::number:
      types = {"number"};
      break;
    case OptionType::string:
    case OptionType::enumeration:
    case OptionType::path:
      types = {"string"};
      break;
    case OptionType::bytes:
      types = {"integer", "string"};
      break;
    case OptionType::duration:
      types = {"number", "string"};
      break;
    case OptionType::list:
      types = {"array"};
      break;
    case OptionType::table:
      types = {"object"};
      break;
  }
  if (option.may_be_unset) types.push_back("null");
  return types;
}

/// The allowed words, and null if the option may be unset: an enum in JSON Schema lists every
/// allowed value.
void add_choices(const Option& option, Value& json) {
  if (option.choices.empty()) return;
  Value::List words(option.choices.begin(), option.choices.end());
  if (option.ignores_case) {
    json["x-titan-choices"] = std::move(words);
    json["x-titan-ignores-case"] = true;
    return;
  }
  if (option.may_be_unset) words.push_back(Value());
  json["enum"] = std::move(words);
}

Value constraints(const Option& option) {
  Value json = Value::map();
  Value::List types = types_of(option);
  json["type"] = types.size() == 1 ? types.front() : Value(std::move(types));
  if (option.type == OptionType::path || option.type == OptionType::bytes ||
      option.type == OptionType::duration)
    json["x-titan-type"] = to_string(option.type);
  add_choices(option, json);
  if (option.lower)
    json[option.lower->inclusive ? "minimum" : "exclusiveMinimum"] =
        json_number(option.lower->value);
  if (option.upper)
    json[option.upper->inclusive ? "maximum" : "exclusiveMaximum"] =
        json_number(option.upper->value);
  if (option.element) json["items"] = constraints(*option.element);
  if (option.table) {
    const Value inner = json_schema(*option.table);
    json["properties"] = inner.at("properties");
    json["additionalProperties"] = inner.at("additionalProperties");
  }
  return json;
}

}  // namespace

Value json_schema(const Schema& schema) {
  Value properties = Value::map();
  for (const Option& option : schema.options) {
    Value json = constraints(option);
    json["description"] = option.help;
    json["default"] = option.default_value;
    if (!option.fed_by.empty()) json["x-titan-follows"] = option.fed_by;
    properties[option.name] = std::move(json);
  }
  return Value::map(
      {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}});
}

}  // namespace titan::core
