#include "core/checkpoint/folder_use.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <titan/checkpoints/checkpoint_folder.h>
#include <titan/files/flock.h>
#include <titan/program/descriptor.h>

namespace titan::core {
namespace {

int open_manifest(const std::filesystem::path& folder) {
  return ::open((folder / kManifestName).c_str(), O_RDONLY | O_CLOEXEC);
}

}  // namespace

FolderUse::~FolderUse() {
  if (file_ >= 0) ::close(file_);
}

bool FolderUse::take(const std::filesystem::path& folder) {
  file_ = open_manifest(folder);
  if (file_ < 0) return errno != ENOENT;  // reading it reports another reason
  if (!try_flock(file_, LOCK_SH) && errno == EWOULDBLOCK) return false;
  struct stat of_file {};  // it may have been removed before the lock was there
  return ::fstat(file_, &of_file) != 0 || of_file.st_nlink > 0;
}

bool remove_unless_used(const std::filesystem::path& folder) {
  const Descriptor manifest(open_manifest(folder));
  if (manifest.is_open() && !try_flock(manifest.get()) && errno == EWOULDBLOCK) return false;
  remove_checkpoint(folder);
  return true;
}

}  // namespace titan::core
