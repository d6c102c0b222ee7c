#include "job_schema.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace titan::commands {
namespace {

const std::string* string_in(const Value& map, std::string_view member) {
  const Value* found = map.find(member);
  return found && found->is_string() ? &found->as_string() : nullptr;
}

/// "[Bb][Ff]16": JSON Schema has no flag for patterns without case.
std::string any_case(const std::string& word) {
  std::string pattern;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte))
      pattern +=
          {'[', static_cast<char>(std::toupper(byte)), static_cast<char>(std::tolower(byte)), ']'};
    else if (std::isalnum(byte) || c == '_')
      pattern += c;
    else
      pattern += {'[', c, ']'};
  }
  return pattern;
}

Value constraints(const Value& option);

/// The types without null, which TOML does not have.
Value::List types_of(const Value& option, bool& may_be_unset) {
  Value::List types;
  const Value& type = option.at("type");
  for (const Value& one : type.is_list() ? type.as_list() : Value::List{type})
    if (one == Value("null"))
      may_be_unset = true;
    else
      types.push_back(one);
  return types;
}

/// An exclusive limit in a form that has the same meaning in every draft.
void add_limits(const Value& option, bool is_integer, Value& json) {
  Value::List excluded;
  for (const auto& [exclusive, inclusive, step] : {std::tuple("exclusiveMinimum", "minimum", 1),
                                                   std::tuple("exclusiveMaximum", "maximum", -1)}) {
    if (const Value* limit = option.find(inclusive)) json[inclusive] = *limit;
    const Value* limit = option.find(exclusive);
    if (!limit) continue;
    if (is_integer && limit->is_integer()) {
      json[inclusive] = limit->as_integer() + step;
    } else {
      json[inclusive] = *limit;
      excluded.push_back(*limit);
    }
  }
  if (!excluded.empty()) json["not"] = Value::map({{"enum", std::move(excluded)}});
}

/// What a value must be, without description and default.
Value constraints(const Value& option) {
  bool may_be_unset = false;
  const Value::List types = types_of(option, may_be_unset);
  Value json = Value::map();
  if (const Value* words = option.find("x-titan-choices")) {
    std::string pattern;
    for (const Value& word : words->as_list())
      pattern += (pattern.empty() ? "^(" : "|") + any_case(word.as_string());
    json = Value::map({{"type", "string"},
                       {"anyOf", Value::list({Value::map({{"enum", *words}}),
                                              Value::map({{"pattern", pattern + ")$"}})})}});
  } else if (const Value* allowed = option.find("enum")) {
    Value::List words;
    for (const Value& word : allowed->as_list())
      if (!word.is_null()) words.push_back(word);
    if (may_be_unset) words.emplace_back("None");
    return Value::map({{"type", "string"}, {"enum", std::move(words)}});
  } else {
    json["type"] = types.size() == 1 ? types.front() : Value(types);
    add_limits(option, types.front() == Value("integer"), json);
    if (const Value* items = option.find("items")) json["items"] = constraints(*items);
  }
  const bool takes_words = types.front() == Value("string") && !option.find("x-titan-choices");
  if (!may_be_unset || takes_words) return json;
  return Value::map(
      {{"anyOf", Value::list({std::move(json), Value::map({{"enum", Value::list({"None"})}})})}});
}

Value table(std::string description = "") {
  Value json = Value::map({{"type", "object"}});
  if (!description.empty()) json["description"] = std::move(description);
  json["additionalProperties"] = false;
  json["properties"] = Value::map();
  return json;
}

bool are_equal(const Value& one, const Value& other) {
  Value a = one, b = other;
  for (Value* value : {&a, &b})
    for (const char* member : {"description", "default"}) (*value)[member] = Value();
  return a == b;
}

/// Adds an option. One of the same name, of another component, becomes an alternative.
void add_option(Value& properties, const std::string& name, Value json) {
  Value* there = properties.find(name);
  if (!there) {
    properties[name] = std::move(json);
    return;
  }
  if (are_equal(*there, json)) return;
  Value alternatives = Value::list();
  if (const Value* earlier = there->find("anyOf"); earlier && there->find("x-titan-alternatives")) {
    alternatives = *earlier;
    for (const Value& one : earlier->as_list())
      if (are_equal(one, json)) return;
  } else {
    alternatives.as_list().push_back(*there);
  }
  alternatives.as_list().push_back(std::move(json));
  Value merged = Value::map();
  if (const std::string* text = string_in(*there, "description")) merged["description"] = *text;
  merged["x-titan-alternatives"] = true;
  merged["anyOf"] = std::move(alternatives);
  *there = std::move(merged);
}

void add_options(const Value& from, const std::string& owner, Value& section) {
  for (const auto& [name, option] : from.as_map()) {
    Value& properties = *section.find("properties");
    const std::string* text = string_in(option, "description");
    if (const Value* inner = option.find("properties")) {
      if (!properties.find(name)) properties[name] = table(text ? *text : "");
      add_options(*inner, owner, *properties.find(name));
      continue;
    }
    Value json = Value::map();
    if (text) json["description"] = owner.empty() ? *text : *text + " (" + owner + ")";
    const Value* standard = option.find("default");
    if (standard && !standard->is_null()) json["default"] = *standard;
    const Value allowed = constraints(option);
    for (const auto& [key, value] : allowed.as_map()) json[key] = value;
    add_option(properties, name, std::move(json));
  }
}

/// The section at a dotted path; a part "*" stands for any name. Made if it is not there.
Value& section_at(Value& root, const std::string& path) {
  Value* here = &root;
  for (size_t from = 0; from <= path.size();) {
    const size_t dot = std::min(path.find('.', from), path.size());
    const std::string part = path.substr(from, dot - from);
    if (part == "*") {
      Value& rest = *here->find("additionalProperties");
      if (!rest.is_map()) rest = table();
      here = here->find("additionalProperties");
    } else {
      Value& properties = *here->find("properties");
      if (!properties.find(part)) properties[part] = table();
      here = properties.find(part);
    }
    from = dot + 1;
  }
  return *here;
}

/// The names that a key of components accepts are offered by editors, but a third party's are
/// accepted.
void add_names(const Value& declared, const Value& row, Value& root) {
  const std::string key = row.at("key").as_string(), kind = row.at("kind").as_string();
  Value::List names;
  if (const std::string* word = string_in(row, "word"); word && !word->empty())
    names.emplace_back(*word);
  for (const Value& one : declared.at("components").as_list())
    if (one.at("kind").as_string() == kind) names.push_back(one.at("name"));
  const size_t dot = key.rfind('.');
  Value* option =
      section_at(root, key.substr(0, dot)).find("properties")->find(key.substr(dot + 1));
  if (!option || names.empty()) return;
  const bool is_list = option->find("items") != nullptr;
  if (const Value* usual = option->find("default"); usual && usual->is_string())
    if (std::find(names.begin(), names.end(), *usual) == names.end()) names.push_back(*usual);
  Value known = Value::map({{"anyOf", Value::list({Value::map({{"enum", std::move(names)}}),
                                                   Value::map({{"pattern", "/"}})})}});
  known["type"] = "string";
  if (is_list) {
    (*option)["items"] = std::move(known);
    return;
  }
  Value named = Value::map();
  for (const char* member : {"description", "default"})
    if (const Value* value = option->find(member)) named[member] = *value;
  for (const auto& [member, value] : known.as_map()) named[member] = value;
  *option = std::move(named);
}

void add_old_keys(const Value& declared, Value& root) {
  for (const Value& old : declared.at("old_keys").as_list()) {
    if (old.at("is_refused").as_boolean()) continue;
    const std::string key = old.at("key").as_string(), current = old.at("current").as_string();
    const size_t dot = key.rfind('.');
    Value& properties = *section_at(root, key.substr(0, dot)).find("properties");
    if (properties.find(key.substr(dot + 1))) continue;
    properties[key.substr(dot + 1)] = Value::map(
        {{"description", current.empty() ? "Old key without effect" : "Old name of " + current},
         {"deprecated", true}});
  }
}

}  // namespace

Value job_schema(const Value& declared) {
  Value root = table("A configuration of titan train");
  for (const auto& [name, section] : declared.at("sections").as_map()) {
    Value& into = section_at(root, name);
    if (const std::string* text = string_in(section, "description")) into["description"] = *text;
    add_options(section.at("properties"), "", into);
  }
  for (const Value& component : declared.at("components").as_list())
    for (const Value& path : component.at("sections").as_list()) {
      const std::string kind = component.at("kind").as_string(),
                        name = component.at("name").as_string();
      Value& into =
          section_at(root, path.as_string() == kind + "." + name ? kind : path.as_string());
      if (path.as_string() != kind + "." + name) {
        add_options(component.at("properties"), kind + " " + name, into);
        continue;
      }
      Value own = table(component.at("description").as_string());  // a name may contain dots
      add_options(component.at("properties"), "", own);
      (*into.find("properties"))[name] = std::move(own);
      // [logger."acme/mine"] of a plugin that is not installed here
      into["patternProperties"] =
          Value::map({{"/", Value::map({{"type", "object"}, {"additionalProperties", true}})}});
    }
  for (const Value& row : declared.at("keys_of_kinds").as_list()) add_names(declared, row, root);
  add_old_keys(declared, root);
  Value schema = Value::map(
      {{"$schema", "http://json-schema.org/draft-04/schema#"}, {"title", "Titan configuration"}});
  for (const auto& [member, value] : root.as_map()) schema[member] = value;
  return schema;
}

}  // namespace titan::commands
