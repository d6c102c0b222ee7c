#include "completion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <titan/program/text.h>

#include "command_line.h"

namespace titan::commands {
namespace {

using Words = std::vector<std::string>;

const Value* find_named(const Value& list, std::string_view name) {
  for (const Value& item : list.as_list())
    if (item.at("name").as_string() == name) return &item;
  return nullptr;
}

std::string text_of(const Value& item, std::string_view member) {
  const Value* found = item.find(member);
  return found && found->is_string() ? found->as_string() : "";
}

bool flag_of(const Value& item, std::string_view member) {
  const Value* found = item.find(member);
  return found && found->is_boolean() && found->as_boolean();
}

/// The placeholders of a usage line in order: {"KIND", "NAME"} of "titan describe KIND [NAME]
/// [--json]".
Words placeholders(const Value& command) {
  const std::string name = command.at("name").as_string(), usage = command.at("usage").as_string();
  Words found;
  std::string word;
  int depth = 0;
  bool is_flag = false;
  for (const char c : usage.substr(std::min(usage.size(), ("titan " + name).size())) + " ") {
    if (c == '[') ++depth, is_flag = false;
    if (c == '-' && word.empty() && depth > 0) is_flag = true;
    if (c != ' ' && c != '[' && c != ']') {
      word += c;
      continue;
    }
    if (!word.empty() && !is_flag && !word.starts_with("--") && word != "...")
      found.push_back(word);
    word.clear();
    if (c == ']') --depth, is_flag = false;
  }
  return found;
}

class Completer {
 public:
  Completer(const Value& declared, const Words& words)
      : declared_(declared), words_(words), last_(words.back()) {}

  Offer complete() {
    if (words_.size() == 1 || (words_.size() == 2 && words_[0] == "help")) {
      offer_commands();
      return std::move(offer_);
    }
    command_ = find_named(declared_.at("commands"), words_[0]);
    if (!command_) return std::move(offer_);
    const auto divider = std::find(words_.begin() + 1, words_.end() - 1, "--");
    if (divider != words_.end() - 1)  // titan launch ... -- train ...
      return flag_of(*command_, "takes_command")
                 ? Completer(declared_, Words(divider + 1, words_.end())).complete()
                 : Offer{.otherwise = Offer::Else::files};
    const size_t equals = last_.find('=');
    const std::string before = words_.size() > 2 ? words_[words_.size() - 2] : "";
    if (last_.starts_with("--") && equals != std::string::npos)
      offer_values(last_.substr(0, equals), last_.substr(0, equals + 1));
    else if (before.starts_with("-") && takes_value(before))
      offer_values(before, "");
    else if (last_.starts_with("-"))
      offer_flags();
    else
      offer_words();
    return std::move(offer_);
  }

 private:
  void add(const std::string& word, const std::string& text = "") {
    if (word.starts_with(last_)) offer_.candidates.push_back({word, text});
  }

  void offer_commands() {
    for (const Value& command : declared_.at("commands").as_list())
      if (!flag_of(command, "is_hidden"))
        add(command.at("name").as_string(), text_of(command, "summary"));
    if (words_.size() > 1) return;
    add("help", "explain a command");
    if (!last_.starts_with("-")) return;
    add("--help", "list the commands");
    add("--version", "version and build");
  }

  const Value* own_flag(const std::string& word) const {
    for (const Value& flag : command_->at("flags").as_list())
      if (flag.at("flag").as_string() == word || text_of(flag, "short") == word) return &flag;
    return nullptr;
  }

  bool takes_job() const { return flag_of(*command_, "takes_job"); }

  // --- keys of the configuration

  /// The value of a key: in the words, in the recipe, or its default.
  std::string chosen(const std::string& key) {
    if (const auto value = value_in(words_, key)) return *value;
    if (!recipe_) recipe_ = recipe_of(words_);
    if (const auto found = recipe_->find(key); found != recipe_->end()) {
      const Value value = parse_json(found->second);
      return value.is_string() ? value.as_string() : "";
    }
    const Value* option = core_key(key);
    return option ? text_of(*option, "default") : "";
  }

  const Value* core_key(const std::string& key) const {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) return nullptr;
    const Value* section = declared_.at("sections").find(key.substr(0, dot));
    for (size_t from = dot + 1; section;) {  // nested tables
      const Value* properties = section->find("properties");
      if (!properties) return nullptr;
      const size_t next = key.find('.', from);
      const Value* member = properties->find(key.substr(from, next - from));
      if (next == std::string::npos || !member) return member;
      section = member;
      from = next + 1;
    }
    return nullptr;
  }

  std::string key_of_kind(const std::string& kind) const {
    for (const Value& row : declared_.at("keys_of_kinds").as_list())
      if (row.at("kind").as_string() == kind) return row.at("key").as_string();
    return "";
  }

  /// Whether a component's options are offered: in a section that several components share, only
  /// those of the chosen one, if that is known.
  bool is_offered(const Value& component, const std::string& section) {
    const std::string kind = component.at("kind").as_string();
    if (section != kind) return true;
    const auto [found, is_new] = chosen_.try_emplace(kind);
    if (is_new) {
      found->second = chosen(key_of_kind(kind));
      bool is_known = false;
      for (const Value& one : declared_.at("components").as_list())
        is_known |=
            one.at("kind").as_string() == kind && one.at("name").as_string() == found->second;
      if (!is_known) found->second.clear();
    }
    return found->second.empty() || component.at("name").as_string() == found->second;
  }

  static void add_keys(const std::string& section, const Value& properties,
                       std::map<std::string, const Value*>& keys) {
    for (const auto& [name, option] : properties.as_map()) {
      const Value* inner = option.find("properties");
      if (inner)
        add_keys(section + "." + name, *inner, keys);
      else
        keys.try_emplace(section + "." + name, &option);
    }
  }

  /// All keys by name.
  std::map<std::string, const Value*> keys() {
    std::map<std::string, const Value*> found;
    for (const auto& [name, section] : declared_.at("sections").as_map())
      if (name.find('*') == std::string::npos) add_keys(name, section.at("properties"), found);
    for (const Value& component : declared_.at("components").as_list())
      for (const Value& section : component.at("sections").as_list())
        if (section.as_string().find('*') == std::string::npos &&
            is_offered(component, section.as_string()))
          add_keys(section.as_string(), component.at("properties"), found);
    return found;
  }

  const Value* find_key(const std::string& flag) {
    if (!takes_job() || !flag.starts_with("--")) return nullptr;
    const std::string key = flag.substr(2);
    if (const Value* option = core_key(key)) return option;
    const auto all = keys();
    const auto found = all.find(key);
    return found == all.end() ? nullptr : found->second;
  }

  static bool is_boolean(const Value& option) {
    const Value* type = option.find("type");
    return type && type->is_string() && type->as_string() == "boolean";
  }

  void offer_flags() {
    for (const Value& flag : command_->at("flags").as_list())
      add(flag.at("flag").as_string(), text_of(flag, "help"));
    if (!takes_job()) return;
    const bool lists_sections = last_.find('.') == std::string::npos;
    std::set<std::string> sections;
    for (const auto& [key, option] : keys()) {
      const std::string section = key.substr(0, key.find('.'));
      if (lists_sections) {
        if (sections.insert(section).second) add("--" + section + ".", section_text(section));
        continue;
      }
      add("--" + key, text_of(*option, "description"));
      const size_t dot = key.rfind('.') + 1;
      const std::string negative = key.substr(0, dot) + "no_" + key.substr(dot);
      if (is_boolean(*option) && last_.find(".no_") != std::string::npos)
        add("--" + negative, "not: " + text_of(*option, "description"));
    }
    if (lists_sections && offer_.candidates.size() == 1)
      offer_.continues = offer_.candidates[0].word.ends_with('.');
  }

  std::string section_text(const std::string& section) const {
    const Value* found = declared_.at("sections").find(section);
    return found ? text_of(*found, "description") : "options of plugins";
  }

  // --- values

  bool takes_value(const std::string& flag) {
    if (const Value* own = own_flag(flag)) return own->find("value") != nullptr;
    const Value* key = find_key(flag);
    return key && !is_boolean(*key);
  }

  /// Adds `word` as the value, after `prefix`; of a list after the items that are there.
  void add_value(const std::string& prefix, bool is_list, const std::string& word,
                 const std::string& text) {
    std::string items;
    if (is_list)
      if (const size_t comma = last_.rfind(',');
          comma != std::string::npos && comma >= prefix.size())
        items = last_.substr(prefix.size(), comma + 1 - prefix.size());
    add(prefix + items + word, text);
  }

  void offer_names(const std::string& kind, const std::string& prefix, bool is_list) {
    if (kind == "flavor") {
      const std::string model = chosen("model.name");
      for (const Value& flavor : declared_.at("flavors").as_list())
        if (flavor.at("model").as_string() == model)
          add_value(prefix, is_list, flavor.at("name").as_string(), text_of(flavor, "description"));
      return;
    }
    const Value& all = declared_.at(kind == "command" ? "commands" : "components");
    for (const Value& one : all.as_list())
      if (kind == "command" ? !flag_of(one, "is_hidden") : one.at("kind").as_string() == kind)
        add_value(prefix, is_list, one.at("name").as_string(),
                  text_of(one, kind == "command" ? "summary" : "description"));
  }

  void offer_choices(const Value* choices, const std::string& prefix, bool is_list) {
    if (!choices || !choices->is_list()) return;
    for (const Value& choice : choices->as_list())
      if (choice.is_string()) add_value(prefix, is_list, choice.as_string(), "");
  }

  void offer_values(const std::string& flag, const std::string& prefix) {
    if (const Value* own = own_flag(flag)) {
      offer_choices(own->find("choices"), prefix, false);
      const std::string what = text_of(*own, "value");
      if (flag_of(*own, "is_path") || what == "FILE" || what == "FOLDER")
        offer_.otherwise = what == "FOLDER" ? Offer::Else::folders : Offer::Else::files;
      return;
    }
    const Value* option = find_key(flag);
    if (!option) return;
    const std::string key = flag.substr(2);
    const Value* items = option->find("items");
    for (const Value& row : declared_.at("keys_of_kinds").as_list())
      if (row.at("key").as_string() == key) {
        if (const std::string usual = text_of(*option, "default"); !usual.empty())
          if (!names_component(row.at("kind").as_string(), usual))
            add_value(prefix, false, usual, "the default");
        if (const std::string word = text_of(row, "word"); !word.empty())
          add_value(prefix, false, word, "");
        offer_names(row.at("kind").as_string(), prefix, items != nullptr);
        return;
      }
    const Value& one = items ? *items : *option;
    if (is_boolean(*option)) {
      add_value(prefix, false, "true", "");
      add_value(prefix, false, "false", "");
    }
    offer_choices(one.find("enum"), prefix, items != nullptr);
    offer_choices(one.find("x-titan-choices"), prefix, items != nullptr);
    if (text_of(one, "x-titan-type") == "path" || key.ends_with("_path") || key.ends_with("_file"))
      offer_.otherwise = Offer::Else::files;
    if (key.ends_with("_folder") || key == "plugins.paths") offer_.otherwise = Offer::Else::folders;
  }

  bool names_component(const std::string& kind, const std::string& name) const {
    for (const Value& one : declared_.at("components").as_list())
      if (one.at("kind").as_string() == kind && one.at("name").as_string() == name) return true;
    return kind == "flavor";
  }

  // --- positional words

  /// The positional words before the last word.
  Words positional() {
    Words found;
    for (size_t i = 1; i + 1 < words_.size(); ++i) {
      if (!words_[i].starts_with("-"))
        found.push_back(words_[i]);
      else if (words_[i].find('=') == std::string::npos && takes_value(words_[i]))
        ++i;
    }
    return found;
  }

  void offer_words() {
    const Words names = placeholders(*command_), before = positional();
    if (names.empty()) return;
    const std::string& name = names[std::min(before.size(), names.size() - 1)];
    const bool is_past = before.size() >= names.size() && !names.back().ends_with("...");
    if (is_past) return;
    if (name == "KIND") {
      for (const Value& kind : declared_.at("kinds").as_list())
        add(kind.as_string(), "kind of plugin");
      if (names.size() > 1 && names[1] == "NAME")
        for (const auto& [section, schema] : declared_.at("sections").as_map())
          if (section.find('*') == std::string::npos && !is_kind(section))
            add(section, "section: " + text_of(schema, "description"));
    } else if (name == "NAME" && !before.empty()) {
      if (before.back() == "flavor")
        for (const Value& flavor : declared_.at("flavors").as_list())
          add(flavor.at("model").as_string() + "/" + flavor.at("name").as_string(),
              text_of(flavor, "description"));
      else
        offer_names(before.back(), "", false);
    } else if (name.find('|') != std::string::npos) {
      for (size_t from = 0; from <= name.size();) {
        const size_t bar = std::min(name.find('|', from), name.size());
        add(name.substr(from, bar - from));
        from = bar + 1;
      }
    } else if (name != "REPO" && name.find('/') == std::string::npos) {
      offer_.otherwise = Offer::Else::files;
    }
  }

  bool is_kind(const std::string& name) const {
    for (const Value& kind : declared_.at("kinds").as_list())
      if (kind.as_string() == name) return true;
    return false;
  }

  const Value& declared_;
  Words words_;
  std::string last_;
  const Value* command_ = nullptr;
  std::optional<std::map<std::string, std::string>> recipe_;
  std::map<std::string, std::string> chosen_;  // by kind
  Offer offer_;
};

}  // namespace

Offer complete(const Value& declared, const Words& words) {
  return words.empty() ? Offer{} : Completer(declared, words).complete();
}

std::vector<std::string> plugin_folders(const Words& words) {
  Words folders = values_in(words, "path");
  for (const std::string& list : values_in(words, "plugins.paths"))
    for (size_t from = 0; from <= list.size();) {
      const size_t comma = std::min(list.find(',', from), list.size());
      if (comma > from) folders.push_back(list.substr(from, comma - from));
      from = comma + 1;
    }
  const auto recipe = recipe_of(words);
  if (const auto found = recipe.find("plugins.paths"); found != recipe.end()) {
    const Value paths = parse_json(found->second);
    if (paths.is_list())
      for (const Value& path : paths.as_list())
        if (path.is_string()) folders.push_back(path.as_string());
  }
  return folders;
}

}  // namespace titan::commands
