#include "core/config/sources/toml_writer.h"

#include <algorithm>

#include <titan/error.h>
#include <titan/shown_text.h>

namespace titan::core {
namespace {

/// A printable character unchanged, others as TOML escapes.
std::string escape_or_text(const std::string& character) {
  if (!character.starts_with("\\x")) return character;  // \u and \U mean the same in TOML
  if (character == "\\x0a") return "\\n";
  if (character == "\\x0d") return "\\r";
  const bool is_ascii = character[2] < '8';
  return is_ascii ? "\\u00" + character.substr(2) : "\\uFFFD";  // a byte that is not UTF-8
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const std::string& character : printable_characters(text)) {
    if (character.size() > 1) {
      out += escape_or_text(character);
      continue;
    }
    switch (character[0]) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += character;
    }
  }
  return out + '"';
}

std::string key_text(const std::string& key) {
  const bool is_bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return is_bare ? key : quoted(key);
}

std::string value_text(const Value& value) {
  switch (value.type()) {
    case Value::Type::null:
      return "\"None\"";
    case Value::Type::string:
      return quoted(value.as_string());
    case Value::Type::list: {
      std::string text = "[";
      for (const Value& item : value.as_list())
        text += (text.size() > 1 ? ", " : "") + value_text(item);
      return text + "]";
    }
    case Value::Type::map: {
      std::string text = "{";
      for (const auto& [name, member] : value.as_map())
        text += (text.size() > 1 ? ", " : " ") + key_text(name) + " = " + value_text(member);
      return text + (text.size() > 1 ? " }" : "}");
    }
    default: {
      const std::string text =
          to_json(value);  // shortest digits that read back equal; the same in TOML
      TITAN_CHECK(text != "null", config,
                  "a number that is not finite cannot be written to a configuration");
      return text;
    }
  }
}

/// Writes the keys of a table first, then its tables, each under its own header.
void write_table(std::string& out, const std::string& path, const Value::Map& members) {
  std::string keys;
  for (const auto& [name, value] : members)
    if (!value.is_map()) keys += key_text(name) + " = " + value_text(value) + "\n";
  if (!keys.empty()) {
    if (!out.empty()) out += "\n";
    if (!path.empty()) out += "[" + path + "]\n";
    out += keys;
  }
  for (const auto& [name, value] : members)
    if (value.is_map())
      write_table(out, (path.empty() ? "" : path + ".") + key_text(name), value.as_map());
}

}  // namespace

std::string to_toml(const Value& resolved) {
  std::string text;
  write_table(text, "", resolved.as_map());
  return text;
}

}  // namespace titan::core
