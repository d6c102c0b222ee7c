#include "core/config/sources/schema_check.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <titan/program/text.h>
#include <titan/suggest.h>

#include "core/config/legacy/legacy_names.h"
#include "core/plugin/kinds.h"

namespace titan::core {
namespace {

/// A choice in the schema's spelling, and null for "None".
Value canonical(const Option& option, const Value& value) {
  if (!value.is_string()) return value;
  if (option.means_unset(value.as_string())) return {};
  if (option.ignores_case)
    for (const std::string& choice : option.choices)
      if (equal_ignoring_case(choice, value.as_string())) return choice;
  return value;
}

/// The option's name in messages. A component's key is shown without its section, which may have
/// one part, [optimizer], or more, [dataset.<name>] and [quantize.linear.float8].
std::string option_name(const KnownOption& known) {
  if (!known.component) return dotted(known.path);
  const std::string& first = known.path.front();
  const PluginKind* kind = find_kind(first);
  const bool is_named = kind && kind->section == PluginKind::Section::name;
  const size_t section = first == "data" ? 3 : !kind ? known.path.size() - 1 : is_named ? 2 : 1;
  return "option '" + dotted(KeyPath(known.path.begin() + section, known.path.end())) + "' of " +
         describe(*known.component);
}

/// Whether `message` contains `key` as a separate word. False for a key of one plain word, such as
/// "steps", which may be an ordinary word.
bool names_key(std::string_view message, std::string_view key) {
  if (key.find_first_of("._") == std::string_view::npos) return false;
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = message.find(key); at != std::string_view::npos;
       at = message.find(key, at + 1)) {
    const size_t end = at + key.size();
    const bool begins = at == 0 || !(is_part(message[at - 1]) || message[at - 1] == '.');
    if (begins && (end == message.size() || !is_part(message[end]))) return true;
  }
  return false;
}

std::string default_hint(const Option& option) {
  if (option.default_value.is_null()) return "default: unset";
  std::string text = to_json(option.default_value);
  return text.size() > 60 ? "" : "default " + text;
}

class Checker {
 public:
  Checker(const SettingList& source, const OptionTable& table, GivenValues& given,
          Diagnostics& diagnostics)
      : source_(source), table_(table), given_(given), diagnostics_(diagnostics) {}

  void check() {
    for (const TableHeader& header : source_.tables) check_header(header);
    for (const Setting& setting : source_.settings) check_setting(setting);
  }

 private:
  void check_header(const TableHeader& header) {
    if (table_.is_section(header.path) || table_.is_unchecked(header.path) ||
        is_reported(header.path))
      return;
    for (const std::string& section : table_.section_names())
      if (begins_with(split_dotted(section), header.path))
        return;  // [quantize] above [quantize.linear]
    reported_.insert(header.path);
    const std::string name = dotted(header.path);
    if (table_.find(header.path))
      diagnostics_.error(header.where, "'" + name + "' is a key, not a section");
    else
      diagnostics_.error(header.where, "unknown section [" + name + "]", section_hint(header.path));
  }

  std::string section_hint(const KeyPath& path) const {
    const auto name = nearest(dotted(path), table_.section_names());
    return name ? "did you mean [" + *name + "]?" : "";
  }

  bool is_reported(const KeyPath& path) const {
    for (KeyPath section = path; !section.empty(); section.pop_back())
      if (reported_.contains(section)) return true;
    return false;
  }

  void check_setting(const Setting& setting) {
    if (is_reported(setting.path)) return;
    if (const KnownOption* known = table_.find(setting.path)) {
      check_value(*known, setting);
    } else if (table_.is_section(setting.path)) {
      diagnostics_.error(setting.key, "[" + dotted(setting.path) + "] is a section, not a key");
    } else if (!table_.is_unchecked(setting.path)) {
      report_unknown(setting);
    } else {
      check_against_all(setting);
    }
  }

  void check_value(const KnownOption& known, const Setting& setting) {
    const Option& option = *known.option;
    Given given{canonical(option, setting.value), setting.key, setting.where, true, setting.items};
    const std::string see = known.component ? describe_command(*known.component) : "";
    if (setting.is_reported) {
      given.is_valid = false;
    } else if (const auto wrong = option.problem(given.value)) {
      given.is_valid = false;
      if (!report_items(known, setting, see))
        diagnostics_.error(setting.where, option_name(known) + " " + *wrong,
                           value_hint(option, setting.value), see);
    }
    given_.put(setting.path, std::move(given));
  }

  static std::string value_hint(const Option& option, const Value& value) {
    const std::string near =
        value.is_string() ? did_you_mean(value.as_string(), option.choices) : "";
    return near.empty() ? default_hint(option) : near;
  }

  /// Reports every wrong item of a list at its place.
  bool report_items(const KnownOption& known, const Setting& setting, const std::string& see) {
    const Option* element = known.option->element.get();
    if (!element || !setting.value.is_list()) return false;
    const Value::List& items = setting.value.as_list();
    for (size_t i = 0; i < items.size(); ++i) {
      const auto wrong = element->problem(items[i]);
      if (!wrong) continue;
      const auto place = std::find_if(setting.items.begin(), setting.items.end(),
                                      [&](const ItemPlace& item) { return item.index == i; });
      diagnostics_.error(place == setting.items.end() ? setting.where : place->where,
                         option_name(known) + " has an item that " + *wrong,
                         items[i].is_string() ? did_you_mean(items[i].as_string(), element->choices)
                                              : default_hint(*known.option),
                         see);
    }
    return true;
  }

  /// Checks a key of a component that no plugin provides and whose name is probably misspelt:
  /// reports what no component of the kind accepts. For the section of an unused component, that
  /// component is the only candidate.
  void check_against_all(const Setting& setting) {
    const UnknownComponent* unknown = table_.unknown_at(setting.path);
    if (!unknown || unknown->candidates.empty()) return;
    const Component& first = *unknown->candidates.front();
    const bool is_one = unknown->candidates.size() == 1;
    const std::string see = is_one ? describe_command(first) : "titan describe " + first.kind;
    const std::string name =
        dotted(KeyPath(setting.path.begin() + static_cast<std::ptrdiff_t>(unknown->section.size()),
                       setting.path.end()));
    const std::vector<const Option*> options = table_.candidate_options(setting.path);
    if (options.empty()) {
      std::vector<std::string> names = table_.keys_in(unknown->section);
      for (const Component* component : unknown->candidates)
        for (const Option& option : component->schema.options) names.push_back(option.name);
      std::string hint = did_you_mean(name, names);
      if (hint.empty()) hint = key_elsewhere(setting.path.back());
      diagnostics_.error(
          setting.key,
          "unknown option '" + name + "'" +
              (is_one ? " for " + describe(first) : ": no " + first.kind + " has it"),
          hint, see);
      return;
    }
    const bool fits_one = std::any_of(options.begin(), options.end(), [&](const Option* option) {
      return !option->problem(canonical(*option, setting.value));
    });
    if (!fits_one)
      diagnostics_.error(setting.where,
                         "option '" + name + "' of " +
                             (is_one ? describe(first) : "every " + first.kind) + " " +
                             *options.front()->problem(canonical(*options.front(), setting.value)),
                         default_hint(*options.front()), see);
  }

  void report_unknown(const Setting& setting) {
    const KeyPath section(setting.path.begin(), setting.path.end() - 1);
    const std::string& key = setting.path.back();
    if (section.empty()) {
      const std::string hint = key_elsewhere(key);
      diagnostics_.error(setting.key, "'" + key + "' is outside of any section", hint);
      return;
    }
    std::vector<std::string> candidates = table_.keys_in(section);
    for (const OldName& old : old_names()) {
      const KeyPath path = split_dotted(old.old_key);
      if (KeyPath(path.begin(), path.end() - 1) == section) candidates.push_back(path.back());
    }
    std::string hint = table_.owned_elsewhere(section, key);
    if (hint.empty()) hint = did_you_mean(key, candidates);
    if (hint.empty()) hint = key_elsewhere(key);
    if (hint.empty()) hint = few_keys(section);
    if (const Component* component = table_.component_of(section))
      diagnostics_.error(setting.key, "unknown option '" + key + "' for " + describe(*component),
                         hint, describe_command(*component));
    else
      diagnostics_.error(setting.key, "unknown key '" + key + "' in [" + dotted(section) + "]",
                         hint);
  }

  /// Lists all keys of a section with few keys, as a hint for a name that resembles none of them.
  std::string few_keys(const KeyPath& section) const {
    constexpr size_t kFew = 6;
    std::string hint;
    const std::vector<std::string> keys = table_.keys_in(section);
    if (keys.size() > kFew) return "";
    for (const std::string& key : keys) hint += (hint.empty() ? "there are: " : ", ") + key;
    return hint;
  }

  /// A hint for the right key in the wrong section, the most common mistake.
  std::string key_elsewhere(const std::string& key) const {
    for (const KnownOption& known : table_.options())
      if (!known.is_old_name && known.path.back() == key)
        return "did you mean '" + dotted(known.path) + "'?";
    return "";
  }

  const SettingList& source_;
  const OptionTable& table_;
  GivenValues& given_;
  Diagnostics& diagnostics_;
  std::set<KeyPath> reported_;  // unknown sections; keys in them are not reported
};

}  // namespace

const Given* GivenValues::find(const KeyPath& path) const {
  const auto found = values_.find(path);
  return found == values_.end() ? nullptr : &found->second;
}

SourceRange GivenValues::place(std::string_view dotted_path) const {
  const Given* given = find(dotted_path);
  return given ? given->where : SourceRange{};
}

SourceRange GivenValues::place_of_rule(std::string_view key, std::string_view message) const {
  const auto is_flag = [](const SourceRange& place) { return place && !place.source->is_file; };
  const SourceRange own = place(key);
  if (is_flag(own)) return own;
  for (const auto& [path, given] : values_)
    if (is_flag(given.where) &&
        (names_key(message, dotted(path)) || names_key(message, path.back())))
      return given.where;
  return own;
}

SourceRange GivenValues::item_place(std::string_view dotted_path, size_t index) const {
  const Given* given = find(dotted_path);
  if (given)
    for (const ItemPlace& item : given->items)
      if (item.index == index) return item.where;
  return place(dotted_path);
}

bool GivenValues::is_sound(std::string_view dotted_path) const {
  const Given* given = find(dotted_path);
  return !given || given->is_valid;
}

void check_settings(const SettingList& source, const OptionTable& table, GivenValues& given,
                    Diagnostics& diagnostics) {
  Checker(source, table, given, diagnostics).check();
}

}  // namespace titan::core
