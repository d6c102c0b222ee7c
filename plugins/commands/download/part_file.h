// What is half loaded: <name>.part beside the file to be, and <name>.part.json that says of which
// content. Used by file_transfer.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <titan/files/growing_file.h>

#include "remote_file.h"

namespace titan::download {

/// The names beside `name`.
std::string part_name(const std::string& name);
std::string note_name(const std::string& name);

/// Appends to the part; of this process alone as long as it lives. Its destructor leaves both files
/// where they are, unless the part is empty.
class PartFile {
 public:
  /// Goes on with what is there when the note says that it is of the same content, else starts with
  /// nothing. `place`: the file to be, in an existing folder. Throws an io Error when another
  /// process holds it or it is no regular file.
  PartFile(const std::filesystem::path& place, const RemoteFile& file);
  ~PartFile();
  PartFile(const PartFile&) = delete;

  const std::filesystem::path& path() const { return part_.path(); }
  int64_t size() const { return part_.size(); }
  /// Strong ETag of the server that gave what is there; empty when it gave none.
  const std::string& etag() const { return etag_; }

  /// Throws an io Error that says how to go on; what was written stays.
  void append(std::string_view bytes);
  /// Throws away what is there; what comes is of `etag`.
  void restart(const std::string& etag);
  /// Fills `out` from byte `offset`.
  void read(int64_t offset, char* out, size_t bytes) const;
  /// The content is whole and right: it gets its name, for good.
  void publish();
  /// The content is wrong: nothing of it stays.
  void discard();

 private:
  void take_note();
  void write_note() const;

  std::filesystem::path place_, note_;
  RemoteFile file_;
  GrowingFile part_;
  std::string etag_;
  bool is_over_ = false;  ///< published or discarded
};

/// A kill right after a file got its name leaves the note: removes it where there is no part.
void remove_stray_note(const std::filesystem::path& place);

}  // namespace titan::download
