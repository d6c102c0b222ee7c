#include "core/config/sources/key_places.h"

#include <algorithm>
#include <cctype>

namespace titan::core {
namespace {

bool is_of_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
         c == '-';
}

/// A word that may name a key; `is_option`: its form or context shows that it is an option's name.
struct Word {
  std::string text;
  bool is_option = false;
};

std::vector<Word> words_of(std::string_view message) {
  std::vector<Word> words;
  for (size_t i = 0; i < message.size();) {
    if (!is_of_a_name(message[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < message.size() && is_of_a_name(message[end])) ++end;
    const bool is_quoted =
        i > 0 && message[i - 1] == '\'' && end < message.size() && message[end] == '\'';
    const bool is_assigned = message.substr(end).starts_with(" = ");
    std::string text(message.substr(i, end - i));
    while (text.ends_with('.')) text.pop_back();
    const bool has_underscore = text.find('_') != std::string::npos;
    words.push_back({std::move(text), is_quoted || is_assigned || has_underscore});
    i = end;
  }
  return words;
}

/// The items of a list that the message quotes. The text after a semicolon is advice and may quote
/// valid items.
std::vector<SourceRange> quoted_items(std::string_view message, const Given& given) {
  message = message.substr(0, message.find(';'));
  std::vector<SourceRange> found;
  for (const ItemPlace& item : given.items)
    if (item.value.is_string() && !item.value.as_string().empty() &&
        message.find("'" + item.value.as_string() + "'") != std::string_view::npos)
      found.push_back(item.where);
  return found;
}

}  // namespace

KeyPlaces::KeyPlaces(const OptionTable& table, const GivenValues& given, const SettingList& file) {
  for (const KnownOption& option : table.options())
    if (!option.is_old_name) known_.insert(dotted(option.path));
  for (const auto& [path, value] : given.all()) given_[dotted(path)] = value;
  for (const TableHeader& header : file.tables)
    sections_.emplace(dotted(header.path), header.where);
}

NamedKey KeyPlaces::named_in(std::string_view message, const std::string& section) const {
  NamedKey found;
  const size_t num_stated = words_of(message.substr(0, message.find(';'))).size();
  bool states_key = false;  // then keys in the advice are ignored
  size_t number = 0;
  for (const Word& word : words_of(message)) {
    const bool is_stated = number++ < num_stated;
    std::string key = word.text;
    if (!known_.contains(key)) {
      if (!word.is_option || section.empty()) continue;
      key = section + "." + word.text;
      if (!known_.contains(key)) continue;
    }
    states_key = states_key || is_stated;
    const auto written = given_.find(key);
    if (written == given_.end()) continue;
    if (!written->second.is_valid) found.is_sound = false;
    if (!found.key.empty() || (states_key && !is_stated)) continue;
    found.key = key;
    found.where = written->second.where;
    found.items = quoted_items(message, written->second);
  }
  return found;
}

SourceRange KeyPlaces::place(const std::string& key) const {
  if (const auto written = given_.find(key); written != given_.end()) return written->second.where;
  const auto section = sections_.find(key);
  return section == sections_.end() ? SourceRange{} : section->second;
}

SourceRange KeyPlaces::item_place(const std::string& key, size_t index) const {
  const auto written = given_.find(key);
  if (written != given_.end())
    for (const ItemPlace& item : written->second.items)
      if (item.index == index) return item.where;
  return place(key);
}

bool KeyPlaces::has_unsound(const Selection& component) const {
  if (!component.options.is_map()) return false;
  const auto& options = component.options.as_map();
  return std::any_of(options.begin(), options.end(), [&](const Value::Member& option) {
    return has_unsound(component.section + "." + option.first);
  });
}

bool KeyPlaces::has_unsound(std::string_view key_or_section) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& one) {
    const auto& [key, given] = one;
    return !given.is_valid && key.starts_with(key_or_section) &&
           (key.size() == key_or_section.size() || key[key_or_section.size()] == '.');
  });
}

}  // namespace titan::core
