// Keeps a second process out of a folder. Used by runs for job.dump_folder.
#pragma once

#include <filesystem>
#include <string>

namespace titan::core {

/// A lock on the file `run.lock` in a folder, of flock(2): the kernel releases it when the process
/// ends, however it ends. It works between machines where the file system shares such locks (NFS,
/// Lustre with flock). Where the file system has no locks, the run warns and continues unprotected.
/// The file names the holder of the lock; it remains when the lock is released.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Throws a config Error that names the holder's host, process and start when another process has
  /// the lock. `key`: the setting that names the folder.
  ///
  /// Does nothing when this object holds the lock already.
  void take(const std::filesystem::path& folder, const std::string& key);
  /// Like take, but does nothing when there is no lock file yet.
  void take_existing(const std::filesystem::path& folder, const std::string& key);

 private:
  void lock(const std::filesystem::path& folder, const std::string& key, int flags);

  int file_ = -1;
};

}  // namespace titan::core
