#include "core/download/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <titan/error.h>
#include <titan/value.h>

#include "core/checkpoint/format/file.h"

namespace titan::core::download {
namespace {

[[noreturn]] void fail_with(const char* what, const std::filesystem::path& path, int error_number) {
  fail(ErrorKind::io, "cannot ", what, " ", path.string(), ": ",
       std::generic_category().message(error_number));
}

bool is_the_same_file(int descriptor, const std::filesystem::path& path) {
  struct stat held {
  }, named{};
  return ::fstat(descriptor, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

std::string part_name(const std::string& name) {
  return name + ".part";
}
std::string note_name(const std::string& name) {
  return name + ".part.json";
}

PartFile::PartFile(const std::filesystem::path& place, const RemoteFile& file)
    : place_(place),
      path_(part_name(place.string())),
      note_(note_name(place.string())),
      file_(file) {
  open();
  try {
    take_note();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

PartFile::~PartFile() {
  if (size_ == 0 && !is_over_) discard();
  ::close(descriptor_);
}

void PartFile::open() {
  while (true) {
    // never through a link, never waiting at a pipe
    descriptor_ =
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail_with("open", path_, errno);
    struct stat status {};
    const bool is_regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
    const bool is_ours = is_regular && ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    // whoever held it before may have given it its name meanwhile
    if (is_ours && is_the_same_file(descriptor_, path_)) {
      size_ = status.st_size;
      return;
    }
    ::close(descriptor_);
    TITAN_CHECK(is_regular, io, "cannot write ", path_.string(), ": it is not a regular file");
    TITAN_CHECK(is_ours, io, path_.string(),
                " is being written by another titan download; wait for its end");
  }
}

void PartFile::take_note() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) fail_with("ask for the size of", path_, errno);
  size_ = status.st_size;
  try {
    const Value note = read_json(note_);
    if (note.at("checksum") == Value(file_.expected) && note.at("etag").is_string() &&
        size_ <= file_.size) {
      etag_ = note.at("etag").as_string();
      return;
    }
  } catch (const Error&) {
    // no note, or a damaged one: it is not known what the part is of
  }
  restart("");
}

void PartFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor_, bytes.data(), bytes.size(), size_);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      fail(ErrorKind::io, "cannot write ", path_.string(), ": ",
           std::generic_category().message(done < 0 ? errno : EIO), "; ", size_, " of ", file_.size,
           " bytes are there and stay; make room for ", file_.size - size_,
           " more and run the same command again");
    size_ += done;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
}

void PartFile::restart(const std::string& etag) {
  if (::ftruncate(descriptor_, 0) != 0) fail_with("empty", path_, errno);
  size_ = 0;
  etag_ = etag;
  write_note();
}

void PartFile::read(int64_t offset, char* out, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = ::pread(descriptor_, out, bytes, offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) fail_with("read", path_, done < 0 ? errno : EIO);
    offset += done;
    out += done;
    bytes -= static_cast<size_t>(done);
  }
}

void PartFile::write_note() const {
  const Value note =
      Value::map({{"checksum", file_.expected}, {"size", file_.size}, {"etag", etag_}});
  ::unlink(note_.c_str());
  // a lost or damaged note costs a fresh start, so it is not synced
  const std::string text = to_json(note) + "\n";
  File::create(note_).write(0, text.data(), static_cast<int64_t>(text.size()));
}

void PartFile::publish() {
  while (::fsync(descriptor_) != 0)
    if (errno != EINTR) fail_with("sync", path_, errno);
  rename_file(path_, place_);
  is_over_ = true;
  ::unlink(note_.c_str());
  sync_folder(place_.parent_path());
}

void PartFile::discard() {
  is_over_ = true;
  ::unlink(note_.c_str());
  ::unlink(path_.c_str());
}

void remove_stray_note(const std::filesystem::path& place) {
  struct stat status {};
  if (::lstat(part_name(place.string()).c_str(), &status) != 0)
    ::unlink(note_name(place.string()).c_str());
}

}  // namespace titan::core::download
