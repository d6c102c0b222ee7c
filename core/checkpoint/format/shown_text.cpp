#include "core/checkpoint/format/shown_text.h"

#include <nlohmann/json.hpp>

#include <titan/error.h>

namespace titan::core {
namespace {

constexpr size_t kMaxShown = 200;

/// The first `most` bytes of `text`, less what would be half a character.
std::string_view cut(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (text[most] & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
      continue;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace

std::string printable(std::string_view name) {
  const std::string_view shown = cut(name, kMaxShown);
  return escaped(shown) + (shown.size() < name.size() ? "..." : "");
}

std::string in_quotes(std::string_view name) {
  return "'" + printable(name) + "'";
}

void append_json_string(std::string& out, const std::string& text, Escapes escapes) {
  try {
    out += nlohmann::json(text).dump(-1, ' ', escapes == Escapes::ascii);
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::data, "cannot write ", in_quotes(text), " as JSON: it is not UTF-8");
  }
}

}  // namespace titan::core
