// An append-only file that can be truncated to its last durable length. Used by titan tokenize and
// titan download for incomplete files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <titan/export.h>

namespace titan {

/// Move-only. Errors are io Errors that name the file.
class TITAN_API GrowingFile {
 public:
  /// Whether `path` may be a symbolic link: a link made by another user can point anywhere.
  enum class Links { follow, refuse };

  /// Opens `path` without changing its content, or creates it.
  explicit GrowingFile(std::filesystem::path path, Links links = Links::follow);
  GrowingFile(GrowingFile&& other) noexcept;
  GrowingFile& operator=(GrowingFile&&) = delete;
  ~GrowingFile();

  const std::filesystem::path& path() const { return path_; }
  /// Includes appended bytes that are not written yet.
  int64_t size() const { return size_ + static_cast<int64_t>(waiting_.size()); }
  /// Also drops appended bytes that are not written yet.
  void truncate(int64_t size);
  /// Collects bytes into large writes; flush() and sync() write the rest.
  void append(std::string_view bytes);
  void flush();
  /// append() and flush() without a copy in between.
  void write(std::string_view bytes);
  /// Fills `out` from byte `offset` of the written content.
  void read(int64_t offset, char* out, size_t bytes) const;
  /// flush() and fsync: afterwards the content survives a power failure.
  void sync();
  /// [before the first append] Locks the file until this object is destroyed. False if another
  /// process holds the lock; true also on a file system without locks.
  bool lock();
  /// Whether `path()` still names this file; with Links::refuse, without following a link.
  bool is_linked() const;

 private:
  void put(std::string_view bytes);

  std::filesystem::path path_;
  Links links_;
  int descriptor_ = -1;
  int64_t size_ = 0;  // written
  std::string waiting_;
};

}  // namespace titan
