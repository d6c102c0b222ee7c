#include "names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <titan/error.h>

namespace titan::commands {
namespace {

bool is_name(const std::string& text, std::string_view further) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return std::isalnum(c) || further.find(static_cast<char>(c)) != std::string_view::npos;
         });
}

}  // namespace

PluginNames plugin_names(const std::string& full_name) {
  const size_t slash = full_name.find('/');
  TITAN_CHECK(slash != std::string::npos, config, "a plugin is named OWNER/NAME, got '", full_name,
              "'; names without an owner are those that ship with Titan");
  PluginNames names{.full_name = full_name,
                    .owner = full_name.substr(0, slash),
                    .name = full_name.substr(slash + 1)};
  TITAN_CHECK(is_name(names.owner, "_-"), config, "the owner in '", full_name,
              "' must start with a letter and hold letters, digits, '_' and '-' only");
  TITAN_CHECK(is_name(names.name, "_"), config, "the name in '", full_name,
              "' must start with a letter and hold letters, digits and '_' only: it becomes the "
              "name of a class");
  bool starts_word = true;
  for (const char c : names.name) {
    if (c != '_')
      names.class_name +=
          starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts_word = c == '_';
  }
  names.library = names.owner + "_" + names.name;
  std::replace(names.library.begin(), names.library.end(), '-', '_');
  return names;
}

Placeholders PluginNames::placeholders() const {
  return {{"FULL_NAME", full_name},
          {"OWNER", owner},
          {"NAME", name},
          {"CLASS", class_name},
          {"LIBRARY", library}};
}

std::string filled_in(std::string text, const Placeholders& placeholders) {
  for (const auto& [name, replacement] : placeholders) {
    const std::string placeholder = "@" + name + "@";
    for (size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;
         at += replacement.size()) {
      const size_t end = at + placeholder.size();
      const bool is_whole_line =
          (at == 0 || text[at - 1] == '\n') && end < text.size() && text[end] == '\n';
      text.replace(at, placeholder.size() + (replacement.empty() && is_whole_line), replacement);
    }
  }
  return text;
}

}  // namespace titan::commands
