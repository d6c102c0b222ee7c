// A file that is being written and gets its name only when its content is verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <titan/files/file.h>

namespace titan::plugin_index {

/// The destructor removes the file unless publish() was called, and the folder if this made it and
/// it is empty.
class NewFile {
 public:
  /// `place`: the final path. Makes the folder.
  explicit NewFile(std::filesystem::path place);
  ~NewFile();
  NewFile(const NewFile&) = delete;

  /// The path until publish().
  const std::filesystem::path& path() const { return path_; }
  int64_t size() const { return size_; }
  void append(std::string_view bytes);
  /// Discards all bytes.
  void restart();
  /// Renames the file to its final path, durably.
  void publish();
  /// After publish(): the file stays also if a later step fails.
  void keep() { is_kept_ = true; }

 private:
  std::filesystem::path place_, path_;
  bool made_folder_;
  File file_;
  int64_t size_ = 0;
  bool is_published_ = false, is_kept_ = false;
};

}  // namespace titan::plugin_index
