// Plugin kind `command`: a word of the command line, `titan NAME ...`, that a plugin adds. The
// flags are the options of the component: `--some-flag` sets the option some_flag, a boolean needs
// no value. No torch in this header; a command that sees torch is not TORCH_FREE and runs in
// titan-train.
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

/// The words that a command takes beside its flags.
struct CommandWords {
  const char* usage = "";  ///< as the usage shows them: "RUN RUN", "RUN..."
  size_t fewest = 0, most = 0;
  /// Also takes the flags of a job, `--section.key VALUE`, as `titan train` does. They are not
  /// looked into: they and their values are words.
  bool takes_job = false;
  /// Its words are a command line that it starts: they stand behind "--" and are not looked into.
  bool takes_command = false;
};

struct CommandContext {
  std::vector<std::string> words;  ///< in their order; between fewest and most of `kWords`
  std::filesystem::path
      program;  ///< the `titan` beside this process, which can start training runs
  /// Opens and trains models (titan/engine.h); outlives the command. Null in a TORCH_FREE one.
  EngineHost* engines = nullptr;
  /// Opens data sets, tokenizers and chat templates (titan/job_parts.h); outlives the command.
  JobParts* parts = nullptr;
};

/// Made once, after every flag was checked, and run once. Both may throw titan::Error, which
/// becomes a message and an exit code: 2 for a config Error, 3 for a plugin Error, 1 for others.
class TITAN_API Command {
 public:
  static constexpr const char* kKind = "command";
  static constexpr CommandWords
      kWords{};  ///< none; a command that takes words has a kWords of its own
  using Interface = Command;
  using Context = CommandContext;

  virtual ~Command();

  /// Returns the exit code of the process (titan/program/exit_codes.h). Text goes out through
  /// titan/program/terminal.h.
  virtual int run() = 0;
};

}  // namespace titan
