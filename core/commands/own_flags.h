// The flags of a command that also takes the configuration's: its own are taken out, the rest
// stays. Used by titan train and titan convert.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/error.h>

namespace titan::core {

struct OwnFlags {
  boost::program_options::variables_map values;
  std::vector<std::string> rest;  ///< --section.key VALUE ..., in their order
};

/// `command`: "titan train". Throws a config Error for a missing or malformed value.
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
            .allow_unregistered()
            .run();
    po::store(parsed, flags.values);
    flags.rest = po::collect_unrecognized(parsed.options, po::include_positional);
  } catch (const po::error& e) {
    fail(ErrorKind::config, e.what(), "; see: ", command, " --help");
  }
  return flags;
}

}  // namespace titan::core
