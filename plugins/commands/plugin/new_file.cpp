#include "new_file.h"

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

#include <titan/error.h>

namespace titan::plugin_index {
namespace {

namespace fs = std::filesystem;

bool make_folder(const fs::path& folder) {
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  TITAN_CHECK(!error, io, "cannot make the folder ", folder.string(), ": ", error.message());
  return is_new;
}

fs::path temporary(const fs::path& place) {
  return place.parent_path() /
         ("." + place.filename().string() + "." + std::to_string(::getpid()) + ".tmp");
}

}  // namespace

NewFile::NewFile(fs::path place)
    : place_(std::move(place)),
      path_(temporary(place_)),
      made_folder_(make_folder(place_.parent_path())),
      file_(File::create(path_)) {}

NewFile::~NewFile() {
  if (is_kept_) return;
  std::error_code ignored;
  fs::remove(is_published_ ? place_ : path_, ignored);
  if (made_folder_) fs::remove(place_.parent_path(), ignored);  // only if it is empty
}

void NewFile::append(std::string_view bytes) {
  file_.write(size_, bytes.data(), static_cast<int64_t>(bytes.size()));
  size_ += static_cast<int64_t>(bytes.size());
}

void NewFile::restart() {
  file_ = File::create(path_);
  size_ = 0;
}

void NewFile::publish() {
  file_.sync();
  rename_file(path_, place_);
  is_published_ = true;
  sync_folder(place_.parent_path());
}

}  // namespace titan::plugin_index
