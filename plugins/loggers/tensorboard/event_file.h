// A TensorBoard event file: length-framed records with checksums. Used by the tensorboard logger.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "../common/output_file.h"

namespace titan::loggers {

/// CRC-32C, rotated and shifted as TFRecord files store it.
uint32_t masked_crc32c(std::string_view bytes);

/// u64 length, its checksum, the payload, its checksum; little endian.
std::string frame_record(std::string_view payload);

/// A new event file. One thread at a time.
class EventFile {
 public:
  /// Closed.
  EventFile() = default;
  /// Creates `folder` and in it `events.out.tfevents.<seconds>.<host>.<pid>.0` plus `suffix`, and
  /// writes the version record. The name sorts after all existing event files, so that readers get
  /// the files of a resumed run in order. Throws an io Error naming folder or file.
  explicit EventFile(const std::filesystem::path& folder, std::string_view suffix = "");

  /// Appends one serialized Event. It is in the file on return; a failed write throws an io Error
  /// and leaves the file unchanged.
  void write(std::string_view event) { output_.append(frame_record(event)); }
  /// Throws an io Error when written data did not reach the file.
  void close() { output_.close(); }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  OutputFile output_;
};

}  // namespace titan::loggers
