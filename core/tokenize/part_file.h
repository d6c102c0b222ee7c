// A file that grows at its end and can be cut back to where it was sure. Used by token_files.cpp
// and tokenize_journal.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace titan::core {

/// Move-only. Errors are io Errors that name the file.
class PartFile {
 public:
  /// Opens `path` as it is, or makes it.
  explicit PartFile(std::filesystem::path path);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  const std::filesystem::path& path() const { return path_; }
  /// What append() was given counts, written or not.
  int64_t size() const { return size_ + static_cast<int64_t>(waiting_.size()); }
  /// Cuts the file back.
  void truncate(int64_t size);
  /// Collected into large writes; what has to wait is written by flush() and sync().
  void append(std::string_view bytes);
  void flush();
  /// flush(), and everything survives a power failure from here on.
  void sync();
  /// False when another process holds it. Held until this is destroyed.
  bool lock();
  /// Whether `path()` still leads to this file.
  bool is_linked() const;

 private:
  void write(std::string_view bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;  // written
  std::string waiting_;
};

}  // namespace titan::core
