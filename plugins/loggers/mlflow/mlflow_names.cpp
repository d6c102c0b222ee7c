// See mlflow_names.h.
#include "mlflow_names.h"

#include <cctype>
#include <cmath>

namespace titan::loggers {
namespace {

constexpr size_t kLongestKey = 250;

/// MLflow stores a metric under its name as a path, so "." and ".." are replaced.
std::string with_sound_parts(const std::string& key) {
  std::string sound;
  for (size_t at = 0; at <= key.size();) {
    const size_t end = std::min(key.find('/', at), key.size());
    const std::string part = key.substr(at, end - at);
    if (!part.empty()) {
      if (!sound.empty()) sound += '/';
      sound += part == "." || part == ".." ? std::string(part.size(), '_') : part;
    }
    at = end + 1;
  }
  return sound.empty() ? "_" : sound;
}

void add_params(const std::string& path, const Value& value, MlflowParams& params) {
  if (value.is_null()) return;
  if (value.is_map()) {
    for (const auto& [name, member] : value.as_map())
      add_params(path.empty() ? name : path + "." + name, member, params);
    return;
  }
  params.emplace_back(mlflow_key(path), value.is_string() ? value.as_string() : to_json(value));
}

}  // namespace

std::string mlflow_key(std::string_view tag) {
  constexpr std::string_view kAllowed = "_-.:/ ";
  std::string key;
  for (const char c : tag) {
    if (c == '%')
      key += "pct";
    else if (c == ')')
      continue;
    else if (std::isalnum(static_cast<unsigned char>(c)) || kAllowed.find(c) != kAllowed.npos)
      key += c;
    else
      key += '_';
  }
  return cut_text(with_sound_parts(key), kLongestKey);
}

Value mlflow_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::string cut_text(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

MlflowParams mlflow_params(const Value& config) {
  MlflowParams params;
  add_params("", config, params);
  return params;
}

}  // namespace titan::loggers
