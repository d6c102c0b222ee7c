// Parses the flags and words of a plugin's command by the schema of its options. Used by
// plugin_command.cpp.
#pragma once

#include <string>
#include <vector>

#include <titan/plugin.h>
#include <titan/value.h>

namespace boost::program_options {
class options_description;
}

namespace titan::core {

/// The parsed arguments of a command.
struct CommandInput {
  bool wants_help = false;
  std::vector<std::string> words;
  Value options = Value::map();  ///< only those that were given; each is valid
};

/// Reads `arguments`, which follow the command's name. `--some-flag` is the option some_flag; where
/// a command has `output` and no `out`, `--out` means `--output`; `-q` is `--quiet`. Each use of a
/// list's flag adds one item, which may contain commas; every other flag may be given once. Throws
/// a config Error with every mistake: unknown flags with the nearest name, values that the schema
/// refuses, a flag given twice, too few or too many words.
CommandInput read_command_input(const Component& command,
                                const std::vector<std::string>& arguments);

/// What `titan NAME --help` prints.
std::string command_help(const Component& command);

/// "titan top RUN [--once]"
std::string command_usage(const Component& command);

/// "--some-flag" of the option some_flag, without the dashes.
std::string flag_of(const Option& option);

/// The command's flags, and --help.
boost::program_options::options_description described_flags(const Component& command);

}  // namespace titan::core
