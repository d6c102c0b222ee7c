// Makes one measured run of one side of a benchmark: a job of Titan in a folder of its own, or a
// command of somebody else's. Used by `titan bench`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "figures.h"

namespace titan::commands {

/// What is measured. A job of Titan unless `command` is there.
struct BenchSide {
  std::string program;                 ///< path of titan
  std::vector<std::string> arguments;  ///< --section.key VALUE ...
  std::string num_ranks;  ///< as titan launch takes it; empty: one process, no launcher
  std::string command;    ///< for /bin/sh
};

/// A new folder below `parent`, or the system's for temporary files; removed with what is in it
/// unless it was made to stay.
class BenchFolder {
 public:
  /// `keep`: make this one and leave it there.
  explicit BenchFolder(const std::optional<std::filesystem::path>& keep);
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool is_kept_ = false;
};

/// The words after `titan` that run `side`, writing into `folder`.
std::vector<std::string> words_of(const BenchSide& side, const BenchSteps& steps,
                                  const std::filesystem::path& folder);

/// Runs `side` once, from its launch to its end. Throws an Error with what the program said when it
/// fails: a config Error when it refused its configuration.
BenchFigures run_once(const BenchSide& side, const BenchSteps& steps,
                      const std::filesystem::path& folder, SignalInbox& signals);

/// Lets Titan look for mistakes in a job without starting it; what it found, empty when nothing.
std::string mistakes_in(const BenchSide& side, const BenchSteps& steps,
                        const std::filesystem::path& folder, SignalInbox& signals);

/// The environment of this process with `more` in the place of what it has under these names, as
/// ChildCommand takes it.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& more);

}  // namespace titan::commands
