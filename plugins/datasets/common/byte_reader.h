// Bytes from front to back: of a file or of memory, unpacked on the way. Used by the data sets that
// read files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace titan::datasets {

/// One thread at a time. After an Error it must not be read on.
class ByteReader {
 public:
  virtual ~ByteReader() = default;

  /// Fills `buffer`; fewer than `count` bytes only at the end, 0 from there on. An end that comes
  /// too early is an Error naming the file.
  virtual size_t read(char* buffer, size_t count) = 0;
  /// What is read, for messages.
  virtual const std::string& name() const = 0;
};

/// The file's bytes from `offset` on, as many as it has now. Throws an io Error when it cannot be
/// read or becomes shorter meanwhile.
std::unique_ptr<ByteReader> read_file(const std::filesystem::path& path, uint64_t offset = 0);

/// `bytes` belong to the caller and outlive the reader.
std::unique_ptr<ByteReader> read_memory(std::string_view bytes, std::string name);

/// Unpacks gzip, all members one after the other; zeros behind a member are passed over, as gzip
/// and Python do. What is damaged, cut off inside a member or followed by other bytes throws a data
/// Error with the offset in the packed and in the unpacked bytes.
std::unique_ptr<ByteReader> gunzip(std::unique_ptr<ByteReader> packed);

/// The same for Zstandard, whose tools take no zeros: all frames, with windows up to 2 GiB
/// (`zstd --long=31`).
std::unique_ptr<ByteReader> unzstd(std::unique_ptr<ByteReader> packed);

/// Whether the name says so: .gz, .zst
bool is_compressed(const std::filesystem::path& path);
/// The file's bytes, unpacked when its name ends with .gz or .zst.
std::unique_ptr<ByteReader> read_unpacked(const std::filesystem::path& path);

}  // namespace titan::datasets
