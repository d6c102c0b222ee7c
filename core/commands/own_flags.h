// Separates a command's own flags from keys of the configuration. Used by the commands that take
// both.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/suggest.h>

#include "core/runtime/launch_env.h"

namespace titan::core {

struct OwnFlags {
  boost::program_options::variables_map values;
  std::vector<std::string> rest;  ///< --section.key VALUE ..., in their order
};

/// Takes the first word if it is a key of the configuration, "--section.key" or
/// "--section.key=VALUE". Boost would refuse an empty value.
inline std::vector<boost::program_options::option> take_key(std::vector<std::string>& words) {
  const std::string word = words.front();
  const std::string name = word.substr(0, word.find('='));
  if (!name.starts_with("--") || name.find('.') == std::string::npos) return {};
  words.erase(words.begin());
  boost::program_options::option key;
  key.string_key = name.substr(2);
  key.unregistered = true;
  key.original_tokens = {word};
  return {key};
}

/// Throws a config Error for a word that is almost one of the command's own flags and no key of the
/// configuration; keys have a dot.
inline void refuse_misspelt(const std::vector<std::string>& words,
                            const boost::program_options::options_description& own,
                            const std::string& command) {
  constexpr int kMostEdits = 2;
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    if (!flag.starts_with("--") || flag.size() < 5 || flag == "--set" ||
        flag.find('.') != std::string::npos)
      continue;
    std::vector<std::string> near;
    for (const auto& option : own.options()) {
      std::string name = "--" + option->long_name();
      if (edit_distance(flag, name) <= kMostEdits) near.push_back(std::move(name));
    }
    TITAN_CHECK(near.empty(), config, "unknown option '", flag, "'; ", did_you_mean(flag, near),
                " See: ", command, " --help");
  }
}

/// `command`: "titan train". Throws a config Error for a missing or malformed value, and for a
/// misspelt flag of the command.
inline OwnFlags take_own_flags(const std::vector<std::string>& words,
                               const boost::program_options::options_description& own,
                               const std::string& command) {
  namespace po = boost::program_options;
  namespace style = po::command_line_style;
  OwnFlags flags;
  try {
    const auto parsed =
        po::command_line_parser(words)
            .options(own)
            .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
            .extra_style_parser(take_key)
            .allow_unregistered()
            .run();
    po::store(parsed, flags.values);
    flags.rest = po::collect_unrecognized(parsed.options, po::include_positional);
    refuse_misspelt(flags.rest, own, command);
  } catch (const po::error& e) {
    fail(ErrorKind::config, e.what(), "; see: ", command, " --help");
  }
  return flags;
}

/// The value of a flag, if it was given.
template <class T, class Into>
void take_flag(const boost::program_options::variables_map& values, const char* name, Into& into) {
  if (values.count(name)) into = values[name].as<T>();
}

/// --rank, --world-size, --local-rank and --master, of every command that runs on many ranks.
inline void add_launch_flags(boost::program_options::options_description& own) {
  namespace po = boost::program_options;
  own.add_options()("rank", po::value<int>()->value_name("R"), "rank of this process")(
      "world-size", po::value<int>()->value_name("N"), "number of ranks")(
      "local-rank", po::value<int>()->value_name("L"), "rank on this node")(
      "master", po::value<std::string>()->value_name("HOST:PORT"),
      "rendezvous address: host of rank 0 and a free port there");
}

/// The values of the flags of add_launch_flags. Throws a config Error for a world without ranks;
/// detect_launch checks the rest.
inline LaunchFlags launch_flags(const boost::program_options::variables_map& values) {
  LaunchFlags flags;
  take_flag<int>(values, "rank", flags.rank);
  take_flag<int>(values, "world-size", flags.world_size);
  take_flag<int>(values, "local-rank", flags.local_rank);
  take_flag<std::string>(values, "master", flags.master);
  TITAN_CHECK(!flags.world_size || *flags.world_size >= 1, config,
              "--world-size must be >= 1, got ", *flags.world_size);
  return flags;
}

}  // namespace titan::core
