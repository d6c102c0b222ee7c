// An incomplete download: <name>.part next to the final file, and <name>.part.json, a note that
// identifies its content. Used by file_transfer.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <titan/files/growing_file.h>

#include "remote_file.h"

namespace titan::download {

/// The names of the two files for `name`.
std::string part_name(const std::string& name);
std::string note_name(const std::string& name);

/// Appends to the part file, which it locks against other processes. The destructor keeps both
/// files, unless the part is empty.
class PartFile {
 public:
  /// Continues the existing part when its note matches the content, else starts an empty one.
  /// `place`: path of the final file, in an existing folder. Throws an io Error when another
  /// process has locked the part or it is not a regular file.
  PartFile(const std::filesystem::path& place, const RemoteFile& file);
  ~PartFile();
  PartFile(const PartFile&) = delete;

  const std::filesystem::path& path() const { return part_.path(); }
  int64_t size() const { return part_.size(); }
  /// Strong ETag from the server that sent the existing bytes; empty: none.
  const std::string& etag() const { return etag_; }

  /// Throws an io Error that says how to continue; written bytes stay.
  void append(std::string_view bytes);
  /// Discards all bytes; those to come belong to `etag`.
  void restart(const std::string& etag);
  /// Fills `out` from byte `offset`.
  void read(int64_t offset, char* out, size_t bytes) const;
  /// The content is verified: renames the part to its final name, durably.
  void publish();
  /// The content is wrong: removes both files.
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

/// A kill right after publish() renamed the part leaves the note. Removes a note without a part.
void remove_leftover_note(const std::filesystem::path& place);

}  // namespace titan::download
