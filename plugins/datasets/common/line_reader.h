// Sequential reader of the lines of a text. Used by the data sets of JSON lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "plugins/datasets/common/byte_reader.h"

namespace titan::datasets {

/// Number of lines and bytes read so far.
struct LinePosition {
  int64_t lines = 0;
  uint64_t offset = 0;
};

/// Lines end with "\n" or "\r\n", the last one also at the end of the text; a UTF-8 byte order mark
/// at the start is skipped. One thread at a time.
class LineReader {
 public:
  static constexpr uint64_t kMaxLineBytes = uint64_t{1} << 30;

  /// `bytes` begin at `start`, which is the end of a line.
  explicit LineReader(std::unique_ptr<ByteReader> bytes, LinePosition start = {},
                      uint64_t max_line_bytes = kMaxLineBytes);

  /// The next line that holds more than white space, with its line end; valid until the next call.
  /// False at the end of the text. Throws a data Error for a line above `max_line_bytes`.
  bool next(std::string_view& line);

  /// The end of the line returned last, whose number, counted from 1, is `position().lines`.
  const LinePosition& position() const { return position_; }
  /// The offset of the line returned last.
  uint64_t line_offset() const { return line_offset_; }

  /// Skips everything before `position`. Throws a data Error if no line ends there.
  void skip_to(const LinePosition& position);

 private:
  bool next_raw(std::string_view& line);
  bool read_more();

  std::unique_ptr<ByteReader> bytes_;
  LinePosition position_;
  uint64_t line_offset_ = 0;
  uint64_t max_line_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // bytes of the buffer not returned yet
  bool is_at_end_ = false;
};

}  // namespace titan::datasets
