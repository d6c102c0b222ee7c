#include "run_config.h"

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace titan::commands {
namespace {

Value value_of(const toml::node& node) {
  if (const auto* list = node.as_array()) {
    Value::List items;
    for (const toml::node& item : *list) items.push_back(value_of(item));
    return items;
  }
  if (const auto* table = node.as_table()) {  // in a list
    Value map = Value::map();
    for (const auto& [key, member] : *table) map[std::string(key.str())] = value_of(member);
    return map;
  }
  if (const auto flag = node.value_exact<bool>()) return *flag;
  if (const auto number = node.value_exact<int64_t>()) return *number;
  if (const auto number = node.value_exact<double>()) return *number;
  if (auto text = node.value_exact<std::string>()) return std::move(*text);
  return Value();  // a date or a time, which no option accepts
}

void flatten(const toml::table& table, const std::string& path,
             std::map<std::string, std::string>& config) {
  for (const auto& [key, member] : table) {
    const std::string name = path + (path.empty() ? "" : ".") + std::string(key.str());
    if (const auto* inner = member.as_table())
      flatten(*inner, name, config);
    else
      config[name] = to_json(value_of(member));
  }
}

}  // namespace

std::map<std::string, std::string> parse_run_config(const std::string& name,
                                                    std::string_view text) {
  std::map<std::string, std::string> config;
  try {
    flatten(toml::parse(text), "", config);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "cannot read ", name, ":", error.source().begin.line, ":",
         error.source().begin.column, ": ", error.description());
  }
  return config;
}

std::map<std::string, std::string> read_run_config(const std::filesystem::path& file) {
  return parse_run_config(file.string(), read_text(file));
}

}  // namespace titan::commands
