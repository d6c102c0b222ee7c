// Parses the arguments of one command by Boost.Program_options: flags, then positional words. Used
// by the commands whose flags are not keys of the configuration.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/program/terminal.h>

namespace titan::core {

/// The arguments of a call. `wants_help`: the usage was printed and the command has nothing left to
/// do.
struct Arguments {
  boost::program_options::variables_map flags;
  std::vector<std::string> words;
  bool wants_help = false;
};

/// Flags and words of `arguments`; `flags` describes the flags other than --help. Flags cannot be
/// abbreviated. Throws a config Error for an unknown flag, a missing value, or a number of words
/// outside [fewest, most].
inline Arguments parse_arguments(const std::string& usage,
                                 boost::program_options::options_description flags,
                                 const std::vector<std::string>& arguments, size_t fewest,
                                 size_t most) {
  namespace po = boost::program_options;
  flags.add_options()("help,h", "show this");
  po::options_description all;
  all.add(flags);
  all.add_options()("words", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("words", -1);

  Arguments parsed;
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positions).style(style).run(),
        parsed.flags);
    po::notify(parsed.flags);
  } catch (const po::error& e) {
    fail(ErrorKind::config, e.what(), "; usage: ", usage);
  }
  if (parsed.flags.count("help")) {
    std::ostringstream text;
    text << "usage: " << usage << "\n" << flags;
    print(text.str());
    parsed.wants_help = true;
    return parsed;
  }
  if (parsed.flags.count("words"))
    parsed.words = parsed.flags["words"].as<std::vector<std::string>>();
  TITAN_CHECK(parsed.words.size() >= fewest, config, "too few arguments; usage: ", usage);
  TITAN_CHECK(parsed.words.size() <= most, config, "too many arguments: '", parsed.words[most],
              "'; usage: ", usage);
  return parsed;
}

/// The value of a flag that may be repeated; empty when it was not given.
inline std::vector<std::string> repeated(const Arguments& parsed, const char* flag) {
  return parsed.flags.count(flag) ? parsed.flags[flag].as<std::vector<std::string>>()
                                  : std::vector<std::string>();
}

}  // namespace titan::core
