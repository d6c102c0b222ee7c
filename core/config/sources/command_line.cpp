#include "core/config/sources/command_line.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include <titan/error.h>
#include <titan/settings/toml_source.h>
#include <titan/suggest.h>

#include "core/config/sources/word_value.h"

namespace titan::core {
namespace {

bool is_flag(std::string_view argument) {
  return argument.starts_with("--");
}
bool is_list_of_lists(const Value& value) {
  if (!value.is_list()) return false;
  const Value::List& items = value.as_list();
  return std::all_of(items.begin(), items.end(), [](const Value& item) { return item.is_list(); });
}

class Parser {
 public:
  Parser(const std::vector<std::string>& arguments, const OptionTable& table,
         Diagnostics& diagnostics)
      : arguments_(arguments), table_(table), diagnostics_(diagnostics) {}

  SettingList parse() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--set" || argument.starts_with("--set="))
        assignment(argument);
      else if (is_flag(argument))
        flag(argument);
      else
        refuse_word(argument);
    }
    return std::move(list_);
  }

 private:
  /// A place in an argument, for messages: `length` code points from `column`.
  static SourceRange place(const std::string& shown, int column, int length) {
    auto source = std::make_shared<const SourceText>(SourceText{"command line", {shown}, false});
    return {std::move(source), 1, column, std::max(1, length)};
  }
  static SourceRange whole(const std::string& argument) {
    return place(argument, 1, num_code_points(argument));
  }

  void refuse_word(const std::string& word) {
    if (word.ends_with(".toml"))
      expected_ = "a configuration is named by --job.config_file " + word;
    diagnostics_.error(whole(word), "unexpected argument '" + word + "'", expected_);
    expected_.clear();
  }

  void assignment(const std::string& argument) {
    expected_.clear();
    const bool attached = argument != "--set";
    if (!attached && next_ >= arguments_.size()) {
      diagnostics_.error(whole(argument), "--set needs section.key=VALUE");
      return;
    }
    const std::string text = attached ? argument.substr(6) : arguments_[next_++];
    SettingList read =
        parse_assignment(text, "--set" + std::string(attached ? "=" : " ") + text, 7, diagnostics_);
    std::move(read.settings.begin(), read.settings.end(), std::back_inserter(list_.settings));
    std::move(read.tables.begin(), read.tables.end(), std::back_inserter(list_.tables));
  }

  void flag(const std::string& argument) {
    expected_.clear();
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    std::optional<std::string> attached;
    if (equals != std::string::npos) attached = argument.substr(equals + 1);

    const std::string name = flag.substr(2);
    KnownOption likely;
    const KnownOption* known = table_.find_flag(name);
    if (!known) known = find_likely(name, likely);
    if (known) {
      if (known->option->type == OptionType::boolean)
        boolean(*known, argument, flag, attached);
      else
        valued(*known, flag, attached);
    } else if (const KnownOption* negated = find_negated(flag)) {
      if (attached)
        diagnostics_.error(whole(argument), "'" + flag + "' takes no value");
      else
        add(*negated, false, whole(argument), whole(argument));
    } else {
      unknown(argument, flag);
    }
  }

  /// For a component that no plugin provides: an option of the components that may have been meant.
  /// Its value is checked against all of them later.
  const KnownOption* find_likely(std::string name, KnownOption& likely) const {
    std::replace(name.begin(), name.end(), '-', '_');
    likely.path = split_dotted(name);
    const std::vector<const Option*> options = table_.candidate_options(likely.path);
    if (options.empty()) return nullptr;
    likely.option = options.front();
    return &likely;
  }

  /// `--checkpoint.no_enable` is the boolean checkpoint.enable.
  const KnownOption* find_negated(std::string_view flag) const {
    const size_t dot = flag.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    const std::string_view last = flag.substr(dot + 1);
    if (!last.starts_with("no_") && !last.starts_with("no-")) return nullptr;
    const std::string positive = std::string(flag.substr(2, dot - 1)) + std::string(last.substr(3));
    const KnownOption* known = table_.find_flag(positive);
    return known && known->option->type == OptionType::boolean ? known : nullptr;
  }

  void boolean(const KnownOption& known, const std::string& argument, const std::string& flag,
               const std::optional<std::string>& attached) {
    const int flag_length = num_code_points(flag);
    const SourceRange where =
        attached ? place(argument, flag_length + 2, num_code_points(*attached)) : whole(argument);
    add(known, attached ? value_of_word(*known.option, *attached) : Value(true),
        place(argument, 1, flag_length), where);
    const size_t dot = flag.rfind('.');
    expected_ = "write " + flag + ", " + flag.substr(0, dot + 1) + "no_" + flag.substr(dot + 1) +
                " or " + flag + "=true";
  }

  void valued(const KnownOption& known, const std::string& flag,
              const std::optional<std::string>& attached) {
    const Option& option = *known.option;
    std::vector<std::string> words;
    if (attached)
      words.push_back(*attached);
    else if (next_ < arguments_.size() && !is_flag(arguments_[next_]))
      words.push_back(arguments_[next_++]);
    if (words.empty()) {
      diagnostics_.error(whole(flag), "'" + flag + "' needs a value", option.allowed());
      return;
    }
    const bool nested = option.type == OptionType::list && option.element->type == OptionType::list;
    while (nested && next_ < arguments_.size() && !is_flag(arguments_[next_]))
      words.push_back(arguments_[next_++]);

    std::string shown = flag + (attached ? "=" : " ") + words[0];
    for (size_t i = 1; i < words.size(); ++i) shown += " " + words[i];
    const int flag_length = num_code_points(flag);
    Value value;
    if (!nested) {
      value = value_of_word(option, words[0]);
    } else if (Value list = bracketed_list(words[0]); words.size() == 1 && is_list_of_lists(list)) {
      value = std::move(list);
    } else if (!(words.size() == 1 && option.means_unset(words[0]))) {
      Value::List inner;
      for (const std::string& word : words) inner.push_back(value_of_word(*option.element, word));
      value = Value(std::move(inner));
    }
    add(known, std::move(value), place(shown, 1, flag_length),
        place(shown, flag_length + 2, num_code_points(shown) - flag_length - 1));
    if (option.type == OptionType::list && !nested)
      expected_ = R"(a list is one word: a,b or '["a", "b"]')";
  }

  void unknown(const std::string& argument, const std::string& flag) {
    while (next_ < arguments_.size() && !is_flag(arguments_[next_])) ++next_;  // its values
    const KeyPath path = split_dotted(with_underscores(flag.substr(2)));
    const UnknownComponent* unknown = table_.unknown_at(path);
    if (unknown && unknown->candidates.empty()) return;
    const std::string elsewhere =
        table_.owned_elsewhere(KeyPath(path.begin(), path.end() - 1), path.back());
    std::vector<std::string> candidates;
    for (const KnownOption& known : table_.options()) {
      if (known.is_old_name) continue;
      candidates.push_back("--" + dotted(known.path));
      if (known.option->type != OptionType::boolean || known.path.size() < 2) continue;
      KeyPath negative = known.path;
      negative.back().insert(0, "no_");
      candidates.push_back("--" + dotted(negative));
    }
    candidates.emplace_back("--set");
    diagnostics_.error(place(argument, 1, num_code_points(flag)), "unknown option '" + flag + "'",
                       elsewhere.empty() ? likely_meant(flag, candidates) : elsewhere);
  }

  /// The hint for an unknown flag. Looks for a key without its section first: `--lr` is not an
  /// abbreviation of --lr_scheduler.name.
  static std::string likely_meant(const std::string& flag,
                                  const std::vector<std::string>& candidates) {
    const auto key_of = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
    if (flag == "--config" || flag == "--config-file" || flag == "--config_file")
      return "did you mean '--job.config_file'?";
    const bool has_section = flag.find('.') != std::string::npos;
    std::string key = has_section ? key_of(flag) : flag.substr(2);
    std::replace(key.begin(), key.end(), '-', '_');
    std::vector<std::string> same;
    for (const std::string& candidate : candidates)
      if (candidate.find('.') != std::string::npos && key_of(candidate) == key)
        same.push_back("'" + candidate + "'");
    std::string hint = has_section ? did_you_mean(flag, candidates) : "";
    constexpr size_t kMost = 3;
    if (hint.empty() && !same.empty() && same.size() <= kMost) {
      hint = "did you mean " + same[0];
      for (size_t i = 1; i < same.size(); ++i)
        hint += (i + 1 < same.size() ? ", " : " or ") + same[i];
      return hint + "?";
    }
    return hint.empty() ? did_you_mean(flag, candidates) : hint;
  }

  void add(const KnownOption& known, Value value, SourceRange key, SourceRange where) {
    list_.settings.push_back({known.path, std::move(value), std::move(key), std::move(where), ""});
  }

  const std::vector<std::string>& arguments_;
  const OptionTable& table_;
  Diagnostics& diagnostics_;
  SettingList list_;
  size_t next_ = 0;
  std::string expected_;  // hint for an unexpected word after the last flag
};

}  // namespace

SettingList parse_command_line(const std::vector<std::string>& arguments, const OptionTable& table,
                               Diagnostics& diagnostics) {
  return Parser(arguments, table, diagnostics).parse();
}

std::optional<std::string> find_config_file(const std::vector<std::string>& arguments) {
  std::optional<std::string> file;
  for (size_t i = 0; i < arguments.size(); ++i)
    for (const std::string_view flag : {"--job.config_file", "--job.config-file"}) {
      const std::string_view argument = arguments[i];
      if (argument == flag && i + 1 < arguments.size() && !is_flag(arguments[i + 1]))
        file = arguments[i + 1];
      else if (argument.starts_with(flag) && argument.substr(flag.size()).starts_with('='))
        file = argument.substr(flag.size() + 1);
    }
  return file;
}

}  // namespace titan::core
