#include "part_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/value.h>

namespace titan::download {
namespace {

/// Opens `path` and locks it against other processes.
GrowingFile open_alone(const std::filesystem::path& path) {
  while (true) {
    GrowingFile part(path, GrowingFile::Links::refuse);
    TITAN_CHECK(part.lock(), io, path.string(),
                " is being written by another titan download; wait until it finishes");
    // the process that held the lock before may have renamed the file since it was opened
    if (part.is_linked()) return part;
  }
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
      note_(note_name(place.string())),
      file_(file),
      part_(open_alone(part_name(place.string()))) {
  take_note();
}

PartFile::~PartFile() {
  if (size() == 0 && !is_over_) discard();
}

void PartFile::take_note() {
  try {
    const Value note = read_json(note_);
    if (note.at("checksum") == Value(file_.expected) && note.at("etag").is_string() &&
        size() <= file_.size) {
      etag_ = note.at("etag").as_string();
      return;
    }
  } catch (const Error&) {
    // no note, or a damaged one: the content of the part is unknown
  }
  restart("");
}

void PartFile::append(std::string_view bytes) {
  try {
    part_.write(bytes);
  } catch (const Error& error) {
    fail(ErrorKind::io, error.message(), "; ", size(), " of ", file_.size,
         " bytes are on disk and stay; make room for ", file_.size - size(),
         " more and run the same command again");
  }
}

void PartFile::restart(const std::string& etag) {
  part_.truncate(0);
  etag_ = etag;
  write_note();
}

void PartFile::read(int64_t offset, char* out, size_t bytes) const {
  part_.read(offset, out, bytes);
}

void PartFile::write_note() const {
  const Value note =
      Value::map({{"checksum", file_.expected}, {"size", file_.size}, {"etag", etag_}});
  ::unlink(note_.c_str());
  // a lost or damaged note only costs a restart of the file, so it is not fsynced
  const std::string text = to_json(note) + "\n";
  File::create(note_).write(0, text.data(), static_cast<int64_t>(text.size()));
}

void PartFile::publish() {
  part_.sync();
  rename_file(path(), place_);
  is_over_ = true;
  ::unlink(note_.c_str());
  sync_folder(place_.parent_path());
}

void PartFile::discard() {
  is_over_ = true;
  ::unlink(note_.c_str());
  ::unlink(path().c_str());
}

void remove_leftover_note(const std::filesystem::path& place) {
  struct stat status {};
  if (::lstat(part_name(place.string()).c_str(), &status) != 0)
    ::unlink(note_name(place.string()).c_str());
}

}  // namespace titan::download
