// Plugin kind `command`: a subcommand `titan NAME ...`. Its flags are the options of the component:
// `--some-flag` sets the option some_flag; a boolean flag needs no value. No torch in this header;
// a command that uses torch is not TORCH_FREE and runs in titan-train.
//
//   class CountSteps final : public titan::Command {
//    public:
//     static constexpr titan::CommandWords kWords{"RUN", 1, 1};
//     CountSteps(const CountStepsOptions& options, titan::CommandContext context);
//     int run() override;
//   };
//
// titan_add_plugin() copies the help text from the source into the manifest, so that `titan --help`
// prints it without opening the plugin.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/export.h>

namespace titan {

class EngineHost;
class JobParts;
class PluginFiles;

/// The positional arguments ("words") of a command.
struct CommandWords {
  const char* usage = "";  ///< their text in the usage line: "RUN RUN", "RUN..."
  size_t fewest = 0, most = 0;
  /// The command also takes the flags of a job, `--section.key VALUE`, as `titan train` does. Flags
  /// and values become words, unparsed.
  bool takes_job = false;
  /// The words are a command line that this command starts. They follow "--" and stay unparsed.
  bool takes_command = false;
};

struct CommandContext {
  std::vector<std::string> words;  ///< in order; as many as `kWords` allows
  std::filesystem::path program;   ///< the `titan` next to this program; starts training runs
  /// Opens and trains models (titan/engine.h); outlives the command. Null if TORCH_FREE.
  EngineHost* engines = nullptr;
  /// Opens data sets, tokenizers and chat templates (titan/job_parts.h); outlives the command.
  JobParts* parts = nullptr;
  /// Checks and opens plugin files (titan/plugin_files.h); outlives the command.
  PluginFiles* plugin_files = nullptr;
};

/// Constructed once, after all flags were checked, and run once. Constructor and run() may throw
/// titan::Error, which becomes a message and an exit code: 2 for a config Error, 3 for a plugin
/// Error, 1 for others.
class TITAN_API Command {
 public:
  static constexpr const char* kKind = "command";
  /// No words; a command with words declares its own kWords.
  static constexpr CommandWords kWords{};
  using Interface = Command;
  using Context = CommandContext;

  virtual ~Command();

  /// Returns the exit code of the process (titan/program/exit_codes.h). Prints through
  /// titan/program/terminal.h.
  virtual int run() = 0;
};

}  // namespace titan
