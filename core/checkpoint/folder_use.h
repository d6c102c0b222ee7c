// Keeps other jobs from removing a checkpoint while this one reads it: replica groups share one
// folder, and one of them saves and removes old steps while others start. Used by start_point and
// the checkpointer.
#pragma once

#include <filesystem>

namespace titan::core {

/// A shared lock of flock(2) on a checkpoint's manifest. Without locks in the file system, every
/// call succeeds and nothing is protected.
class FolderUse {
 public:
  FolderUse() = default;
  ~FolderUse();
  FolderUse(const FolderUse&) = delete;
  FolderUse& operator=(const FolderUse&) = delete;

  /// [once] False if the checkpoint is being removed or is gone.
  bool take(const std::filesystem::path& folder);

 private:
  int file_ = -1;
};

/// Removes the checkpoint. False, and nothing happens, while another process reads it.
bool remove_unless_used(const std::filesystem::path& folder);

}  // namespace titan::core
