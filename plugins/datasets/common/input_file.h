// Reads a file at any offset. Used by the data sets that read files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace titan::datasets {

/// Reads with system calls instead of mmap: a file that shrinks during a run gives an error with
/// its name instead of a signal, and its pages do not count as this process's memory. Reading is
/// const; any number of threads may read.
class InputFile {
 public:
  /// A closed file.
  InputFile() = default;
  /// Throws an io Error naming the file and the reason; also if it is not a regular file.
  explicit InputFile(std::filesystem::path path);
  InputFile(InputFile&& other) noexcept { *this = std::move(other); }
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  bool is_open() const { return descriptor_ >= 0; }
  const std::filesystem::path& path() const { return path_; }
  /// In bytes, when it was opened.
  uint64_t size() const { return size_; }

  /// Reads up to `count` bytes at `offset` into `buffer`; fewer only at the end of the file.
  size_t read_some(uint64_t offset, char* buffer, size_t count) const;
  /// The bytes [begin, end). Throws an io Error when the file has become shorter.
  void read(uint64_t begin, uint64_t end, char* bytes) const;
  void read(uint64_t begin, uint64_t end, std::string& bytes) const;
  /// Advises the kernel that the file will be read sequentially.
  void will_be_read_in_order() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace titan::datasets
