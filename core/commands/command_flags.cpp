#include "core/commands/command_flags.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/suggest.h>

#include "core/commands/own_flags.h"
#include "core/config/sources/word_value.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;

/// "NUMBER"
std::string value_name(const Option& option) {
  std::string name = option.type == OptionType::path      ? "FILE"
                     : option.type == OptionType::string  ? "TEXT"
                     : option.type == OptionType::list    ? "TEXT"  // of one item
                     : option.type == OptionType::integer ? "N"
                                                          : to_string(option.type);
  if (option.type == OptionType::enumeration || !option.choices.empty()) name = "WORD";
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

/// The help text with the allowed values and the default.
std::string help_of(const Option& option) {
  std::string text = option.help;
  if (option.type == OptionType::boolean) return text;
  std::string more;
  if (option.lower || option.upper || !option.choices.empty()) more = option.allowed();
  const Value& value = option.default_value;
  const bool is_empty = value.is_null() || (value.is_string() && value.as_string().empty()) ||
                        (value.is_list() && value.as_list().empty());
  if (!is_empty)
    more += (more.empty() ? "" : "; ") + std::string("default ") +
            (value.is_string() ? value.as_string() : to_json(value));
  return more.empty() ? text : text + " (" + more + ")";
}

}  // namespace

std::string flag_of(const Option& option) {
  std::string flag = option.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string command_usage(const Component& command) {
  std::string usage = "titan " + command.name;
  if (*command.words.usage && !command.words.takes_command)
    usage += " " + std::string(command.words.usage);
  const std::string job = command.words.takes_job       ? " [--section.key VALUE]..."
                          : command.words.takes_command ? " -- " + std::string(command.words.usage)
                                                        : "";
  constexpr size_t kMostListed = 4;
  if (command.schema.options.size() > kMostListed) return usage + " [OPTION]..." + job;
  for (const Option& option : command.schema.options)
    usage += " [--" + flag_of(option) +
             (option.type == OptionType::boolean ? "" : " " + value_name(option)) + "]";
  return usage + job;
}

po::options_description described_flags(const Component& command) {
  po::options_description flags;
  for (const Option& option : command.schema.options) {
    const std::string flag = flag_of(option) + (option.name == "quiet" ? ",q" : "");
    const std::string help = help_of(option);
    if (option.type == OptionType::boolean)
      flags.add_options()(flag.c_str(), help.c_str());
    else
      flags.add_options()(flag.c_str(),
                          po::value<std::vector<std::string>>()->value_name(value_name(option)),
                          help.c_str());
  }
  flags.add_options()("help,h", "show this");
  return flags;
}

namespace {

class InputReader {
 public:
  explicit InputReader(const Component& command) : command_(command) {
    known_.add(described_flags(command));
    const Schema& schema = command.schema;
    if (schema.find("output") && !schema.find("out"))
      known_.add_options()("out", po::value<std::vector<std::string>>());
    known_.add_options()("words", po::value<std::vector<std::string>>());
  }

  CommandInput read(const std::vector<std::string>& arguments) {
    auto divider = arguments.end();
    if (command_.words.takes_command) divider = std::find(arguments.begin(), divider, "--");
    for (const auto& given : parsed({arguments.begin(), divider}).options) take(given);
    if (command_.words.takes_command) {
      for (const std::string& word : input_.words)
        wrong("'" + word + "' is not a flag of titan " + command_.name +
              "; put the command to start after '--'; usage: " + command_usage(command_));
      input_.words.assign(divider == arguments.end() ? divider : divider + 1, arguments.end());
    }
    if (!input_.wants_help && !has_unknown_) check_words();
    TITAN_CHECK(problems_.empty() || input_.wants_help, config, problems_, "see: titan ",
                command_.name, " --help");
    return std::move(input_);
  }

 private:
  po::parsed_options parsed(const std::vector<std::string>& arguments) const {
    po::positional_options_description positions;
    positions.add("words", -1);
    namespace style = po::command_line_style;
    const int all = style::unix_style & ~style::allow_guessing;
    // no short flags: the value of a job's flag may begin with a dash
    const int job = style::allow_long | style::long_allow_adjacent | style::long_allow_next;
    try {
      po::command_line_parser parser(arguments);
      parser.options(known_).positional(positions).allow_unregistered();
      if (command_.words.takes_job)
        parser.style(job).extra_style_parser(take_key);
      else
        parser.style(all);
      return parser.run();
    } catch (const po::error& e) {
      fail(ErrorKind::config, e.what(), "; see: titan ", command_.name, " --help");
    }
  }

  void wrong(const std::string& what) { problems_ += what + "\n"; }

  void take(const po::option& given) {
    const std::string first = given.original_tokens.empty() ? "" : given.original_tokens.front();
    if (given.unregistered && command_.words.takes_job && is_of_a_job(first)) {
      input_.words.insert(input_.words.end(), given.original_tokens.begin(),
                          given.original_tokens.end());
    } else if (given.unregistered) {
      unknown(first);
    } else if (given.string_key == "help") {
      input_.wants_help = true;
    } else if (given.string_key == "words") {
      input_.words.insert(input_.words.end(), given.value.begin(), given.value.end());
    } else {
      take_flag(given);
    }
  }

  static bool is_of_a_job(const std::string& word) {
    const std::string flag = word.substr(0, word.find('='));
    return flag == "--set" || flag.find('.') != std::string::npos;
  }

  void unknown(const std::string& word) {
    has_unknown_ = true;
    const std::string flag = word.substr(0, word.find('='));
    std::vector<std::string> flags = {"--help"};
    for (const Option& option : command_.schema.options) flags.push_back("--" + flag_of(option));
    const std::string hint = did_you_mean(flag, flags);
    wrong("unknown option '" + flag + "'" + (hint.empty() ? "" : "; " + hint));
  }

  void take_flag(const po::option& given) {
    std::string name = given.string_key;
    std::replace(name.begin(), name.end(), '-', '_');
    const std::string flag = "--" + given.string_key;
    if (name == "out" && !command_.schema.find(name)) name = "output";
    const Option& option = *command_.schema.find(name);
    const bool is_list = option.type == OptionType::list;
    if (!seen_.insert(name).second && !is_list) return wrong(flag + " is given twice");
    Value value = option.type == OptionType::boolean ? Value(true)
                  : is_list ? Value::list({given.value.front()})  // commas do not split the item
                            : value_of_word(option, given.value.front());
    if (const auto problem = option.problem(value)) return wrong(flag + " " + *problem);
    if (const Value* before = input_.options.find(name); before && is_list) {
      Value::List items = before->as_list();
      for (const Value& item : value.as_list()) items.push_back(item);
      value = std::move(items);
    }
    input_.options[name] = std::move(value);
  }

  void check_words() {
    const CommandWords& wanted = command_.words;
    const size_t count = input_.words.size();
    if (count < wanted.fewest)
      wrong("too few arguments; usage: " + command_usage(command_));
    else if (count > wanted.most)
      wrong("too many arguments: '" + input_.words[wanted.most] +
            "'; usage: " + command_usage(command_));
  }

  const Component& command_;
  po::options_description known_;
  CommandInput input_;
  std::set<std::string> seen_;
  std::string problems_;
  bool has_unknown_ = false;
};

}  // namespace

CommandInput read_command_input(const Component& command,
                                const std::vector<std::string>& arguments) {
  return InputReader(command).read(arguments);
}

std::string command_help(const Component& command) {
  std::ostringstream text;
  text << "usage: " << command_usage(command) << "\n\n"
       << command.help << "\n\n"
       << described_flags(command);
  if (command.words.takes_job)
    text << "\n--job.config_file FILE and --section.key VALUE are listed by titan train --help; an "
            "example:\n--parallelism.tensor_parallel_degree 2\n";
  return text.str();
}

}  // namespace titan::core
