#include <titan/settings/settings.h>

#include <algorithm>

#include <titan/shown_text.h>

namespace titan {

int num_code_points(std::string_view text) {
  return static_cast<int>(printable_characters(text).size());
}

std::string SourceRange::to_string() const {
  if (!source) return "default";
  if (!source->is_file) return source->name;
  return source->name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

bool begins_with(const KeyPath& path, const KeyPath& section) {
  return path.size() >= section.size() && std::equal(section.begin(), section.end(), path.begin());
}

std::string dotted(const KeyPath& path) {
  std::string text;
  for (const std::string& part : path) text += (text.empty() ? "" : ".") + part;
  return text;
}

KeyPath split_dotted(std::string_view path) {
  KeyPath parts(1);
  for (const char c : path) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

}  // namespace titan
