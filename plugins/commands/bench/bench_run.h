// Executes one measured run of one side of a benchmark: a Titan job in a new folder, or another
// program's command. Used by `titan bench`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "figures.h"

namespace titan::commands {

/// One side of a benchmark: a Titan job, or `command` when it is not empty.
struct BenchSide {
  std::string program;                 ///< path of titan
  std::vector<std::string> arguments;  ///< --section.key VALUE ...
  std::string num_ranks;  ///< as for titan launch --nproc; empty: one process without a launcher
  std::string command;    ///< a shell command, for /bin/sh
};

/// A new folder in the system's temporary folder, removed with its contents by the destructor, or a
/// given folder that stays.
class BenchFolder {
 public:
  /// `keep`: create this folder and do not remove it.
  explicit BenchFolder(const std::optional<std::filesystem::path>& keep);
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool is_kept_ = false;
};

/// The arguments of `titan` that run `side` with `folder` as output.
std::vector<std::string> words_of(const BenchSide& side, const BenchSteps& steps,
                                  const std::filesystem::path& folder);

/// Runs `side` once, from launch to exit. When it fails, throws an Error with the end of its
/// output: a config Error when Titan rejected the configuration, else an io Error.
BenchFigures run_once(const BenchSide& side, const BenchSteps& steps,
                      const std::filesystem::path& folder, SignalInbox& signals);

/// Checks a job without starting it. Returns the problems that Titan reports, empty when there are
/// none.
std::string mistakes_in(const BenchSide& side, const BenchSteps& steps,
                        const std::filesystem::path& folder, SignalInbox& signals);

/// The environment of this process, with the variables of `more` added or replaced, as ChildCommand
/// takes it.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& more);

}  // namespace titan::commands
