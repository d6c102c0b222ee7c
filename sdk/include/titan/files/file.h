// Files: positional reads and writes, optionally fsynced. Errors name the path. Used by all code
// that reads or writes data that must not be lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <titan/value.h>

#include <titan/export.h>

namespace titan {

/// An open file. Move-only; closed by the destructor. Thread: reads may run concurrently.
class TITAN_API File {
 public:
  /// This and create() throw an io Error that names the path if the file cannot be opened.
  static File open_to_read(const std::filesystem::path& path);
  /// Truncates an existing file.
  static File create(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  int64_t size() const;
  /// Fills `out` from byte `offset`. Throws an io Error when the file ends before that.
  void read(int64_t offset, char* out, int64_t bytes) const;
  /// Hints to the kernel that these bytes will be read soon.
  void expect_read(int64_t offset, int64_t bytes) const;
  void write(int64_t offset, const char* data, int64_t bytes) const;
  /// fsync: afterwards the content survives a power failure.
  void sync() const;

 private:
  File(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// The whole content.
TITAN_API std::string read_text(const std::filesystem::path& path);
/// Parses the content as JSON; a data Error names the file too.
TITAN_API Value read_json(const std::filesystem::path& path);
/// fsync of a folder: afterwards renames and new names in it survive a power failure.
TITAN_API void sync_folder(const std::filesystem::path& folder);
/// Replaces the file at `path` so that readers find either the old or the new content, also after a
/// power failure: temporary file in the same folder, sync, rename, sync of the folder.
TITAN_API void write_text_atomically(const std::filesystem::path& path, std::string_view text);
/// Renames within a folder; throws an io Error naming both.
TITAN_API void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace titan
