#include "shell_text.h"

#include <cmath>

#include <titan/error.h>
#include <titan/files/json_string.h>

namespace titan::commands {
namespace {

std::string quoted(const std::string& text) {
  std::string quoted;
  append_json_string(quoted, text);  // the escapes of JSON are valid in TOML
  return quoted;
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string toml_text(const Value& value) {
  switch (value.type()) {
    case Value::Type::string:
      return quoted(value.as_string());
    case Value::Type::number:
      if (std::isnan(value.as_number())) return "nan";
      if (std::isinf(value.as_number())) return value.as_number() > 0 ? "inf" : "-inf";
      return to_json(value);
    case Value::Type::list: {
      std::string text;
      for (const Value& item : value.as_list())
        text += (text.empty() ? "" : ", ") + toml_text(item);
      return "[" + text + "]";
    }
    case Value::Type::map: {
      std::string text;
      for (const auto& [name, member] : value.as_map())
        text += (text.empty() ? "" : ", ") + quoted(name) + " = " + toml_text(member);
      return "{" + text + "}";
    }
    case Value::Type::null:
      fail(ErrorKind::config, "TOML has no null");
    default:
      return to_json(value);
  }
}

}  // namespace titan::commands
