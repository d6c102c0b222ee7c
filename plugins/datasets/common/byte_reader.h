// Sequential reader of bytes of a file or of memory, with decompression. Used by the data sets that
// read files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace titan::datasets {

/// One thread at a time. Must not be used after an Error.
class ByteReader {
 public:
  virtual ~ByteReader() = default;

  /// Fills `buffer`; returns fewer than `count` bytes only at the end, then 0. A truncated file is
  /// an Error that names it.
  virtual size_t read(char* buffer, size_t count) = 0;
  /// The name of the source, for messages.
  virtual const std::string& name() const = 0;
};

/// The file's bytes from `offset` to its present end. Throws an io Error if it cannot be read or
/// becomes shorter meanwhile.
std::unique_ptr<ByteReader> read_file(const std::filesystem::path& path, uint64_t offset = 0);

/// `bytes` belong to the caller and outlive the reader.
std::unique_ptr<ByteReader> read_memory(std::string_view bytes, std::string name);

/// Decompresses all members of a gzip file; zeros after a member are skipped, as by gzip and
/// Python. Damaged data, a truncated member or other trailing bytes throw a data Error with the
/// offsets in the compressed and in the decompressed bytes.
std::unique_ptr<ByteReader> gunzip(std::unique_ptr<ByteReader> packed);

/// The same for all frames of a Zstandard file, with windows up to 2 GiB (`zstd --long=31`); like
/// zstd's tools it does not skip zeros.
std::unique_ptr<ByteReader> unzstd(std::unique_ptr<ByteReader> packed);

/// Whether the name ends with .gz or .zst.
bool is_compressed(const std::filesystem::path& path);
/// The file's bytes, decompressed if its name ends with .gz or .zst.
std::unique_ptr<ByteReader> read_unpacked(const std::filesystem::path& path);

}  // namespace titan::datasets
