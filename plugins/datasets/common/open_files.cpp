// See open_files.h.
#include "plugins/datasets/common/open_files.h"

#include <utility>

#include <titan/error.h>

namespace titan::datasets {

size_t OpenFiles::add(std::filesystem::path path, uint64_t num_bytes) {
  files_.push_back({std::move(path), num_bytes, nullptr, {}});
  return files_.size() - 1;
}

std::shared_ptr<const InputFile> OpenFiles::open(size_t file) const {
  const std::lock_guard lock(mutex_);
  File& wanted = files_[file];
  if (wanted.opened) {
    uses_.splice(uses_.begin(), uses_, wanted.use);
    return wanted.opened;
  }
  auto opened = std::make_shared<const InputFile>(wanted.path);
  TITAN_CHECK(opened->size() == wanted.num_bytes, io, "'", wanted.path.string(),
              "' has changed from ", wanted.num_bytes, " to ", opened->size(),
              " bytes since the data set was opened");
  if (uses_.size() >= max_open_) {
    files_[uses_.back()].opened.reset();
    uses_.pop_back();
  }
  uses_.push_front(file);
  wanted.use = uses_.begin();
  wanted.opened = std::move(opened);
  return wanted.opened;
}

}  // namespace titan::datasets
