// Copies everything that a job runs into one folder: programs, libraries of Titan, plugins, recipe.
// Used by titan submit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/program/signal_inbox.h>
#include <titan/value.h>

namespace titan::commands {

struct SnapshotRequest {
  std::filesystem::path program;            ///< titan; titan-train is next to it
  std::filesystem::path recipe;             ///< the file as the user wrote it
  std::vector<std::string> flags;           ///< further flags of the job
  std::vector<std::filesystem::path> code;  ///< folders with sources to keep
  int64_t ranks = 1;
  bool is_elsewhere = false;  ///< the job's files need not be on this machine
};

/// A file that the job reads where it is.
struct OutsideFile {
  std::filesystem::path path;  ///< absolute
  int64_t bytes = 0;
  std::string sha256;  ///< empty: too large to be read
};

struct Snapshot {
  std::string version;                 ///< of titan
  std::filesystem::path torch_folder;  ///< of libtorch_cpu.so; empty if titan-train has none
  std::vector<OutsideFile> libraries;  ///< that titan-train loads and that are not copied
  std::vector<OutsideFile> inputs;     ///< tokenizer and data set
};

/// Fills the empty folder `into`:
///   bin/titan bin/titan-train lib/libtitan_*.so lib/titan/plugins/*.plugin.so
///   given.toml (the user's file) recipe.toml (resolved by these copies) code/<name>/...
/// Throws a config or plugin Error with Titan's report if the job is invalid.
Snapshot take_snapshot(const SnapshotRequest& request, const std::filesystem::path& into,
                       SignalInbox& signals);

/// The regular files below `folder`, relative, sorted.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

}  // namespace titan::commands
