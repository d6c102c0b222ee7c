// A .wandb file: a LevelDB log of protobuf records. Used by the wandb logger.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "../common/output_file.h"

namespace titan::loggers {

/// The bytes to append at `offset` of the file for `payload`: chunks that do not cross boundaries
/// of blocks of 32,768 bytes. Each chunk is u32 CRC-32 of type and data, u16 length, u8 type (1 the
/// whole record, 2 its beginning, 3 a middle, 4 its end), data; little endian. When a block has
/// fewer than 7 bytes left, they are zeros.
std::string frame_wandb_record(std::string_view payload, uint64_t offset);

/// A new file. One thread at a time.
class WandbFile {
 public:
  /// Closed.
  WandbFile() = default;
  /// Writes the seven bytes of the file header. Throws an io Error naming the file, also when it
  /// exists.
  explicit WandbFile(const std::filesystem::path& path);

  /// Appends one serialized Record. It is in the file on return; a failed write throws an io Error.
  void write(std::string_view record);
  /// Throws an io Error when written data did not reach the file.
  void close() { output_.close(); }

 private:
  OutputFile output_;
  uint64_t size_ = 0;
};

}  // namespace titan::loggers
