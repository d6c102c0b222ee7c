// A file that grows at its end and can be cut back to where it was sure. Used by titan tokenize and
// titan download for what is not complete yet.
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
  /// What `path` may be: a link that somebody else made can lead anywhere.
  enum class Links { follow, refuse };

  /// Opens `path` as it is, or makes it.
  explicit GrowingFile(std::filesystem::path path, Links links = Links::follow);
  GrowingFile(GrowingFile&& other) noexcept;
  GrowingFile& operator=(GrowingFile&&) = delete;
  ~GrowingFile();

  const std::filesystem::path& path() const { return path_; }
  /// What append() was given counts, written or not.
  int64_t size() const { return size_ + static_cast<int64_t>(waiting_.size()); }
  /// Cuts the file back.
  void truncate(int64_t size);
  /// Collected into large writes; what has to wait is written by flush() and sync().
  void append(std::string_view bytes);
  void flush();
  /// append() and flush() without a copy in between.
  void write(std::string_view bytes);
  /// Fills `out` from byte `offset` of what is written.
  void read(int64_t offset, char* out, size_t bytes) const;
  /// flush(), and everything survives a power failure from here on.
  void sync();
  /// False when another process holds it. Held until this is destroyed. [before the first append]
  bool lock();
  /// Whether `path()` still leads to this file; where links are refused, whether it still is it.
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
