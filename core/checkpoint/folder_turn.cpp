#include "core/checkpoint/folder_turn.h"

#include <fcntl.h>

#include <cerrno>
#include <thread>

#include <titan/files/flock.h>

namespace titan::core {

using namespace std::chrono_literals;

bool FolderTurn::begin(const std::filesystem::path& folder, std::chrono::milliseconds patience) {
  const std::lock_guard lock(mutex_);
  if (num_begun_ == 0) {
    file_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto until = std::chrono::steady_clock::now() + patience;
    while (file_.is_open() && !try_flock(file_.get()) && errno == EWOULDBLOCK) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(20ms);
    }
  }
  ++num_begun_;
  return true;
}

void FolderTurn::end() {
  const std::lock_guard lock(mutex_);
  if (--num_begun_ == 0) file_ = Descriptor();
}

}  // namespace titan::core
