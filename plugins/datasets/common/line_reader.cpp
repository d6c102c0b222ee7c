// See line_reader.h.
#include "plugins/datasets/common/line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <titan/error.h>

namespace titan::datasets {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;  // fits into the L2 cache
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteReader> bytes, LinePosition start,
                       uint64_t max_line_bytes)
    : bytes_(std::move(bytes)),
      position_(start),
      line_offset_(start.offset),
      max_line_bytes_(max_line_bytes),
      buffer_(kBufferBytes) {}

bool LineReader::next(std::string_view& line) {
  for (std::string_view raw; next_raw(raw);) {
    line_offset_ = position_.offset;
    ++position_.lines;
    position_.offset += raw.size();
    if (line_offset_ == 0 && raw.starts_with(kByteOrderMark)) {
      raw.remove_prefix(kByteOrderMark.size());
      line_offset_ = kByteOrderMark.size();
    }
    if (raw.find_first_not_of(" \t\r\n") == raw.npos) continue;
    line = raw;
    return true;
  }
  return false;
}

bool LineReader::next_raw(std::string_view& line) {
  for (size_t searched = begin_;;) {
    const void* newline = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (newline) {
      const size_t end =
          static_cast<size_t>(static_cast<const char*>(newline) - buffer_.data()) + 1;
      line = {buffer_.data() + begin_, end - begin_};
      begin_ = end;
      return true;
    }
    const size_t length = end_ - begin_;
    TITAN_CHECK(length <= max_line_bytes_, data, bytes_->name(), ":", position_.lines + 1,
                ": the line is longer than ", max_line_bytes_,
                " bytes; is the file really JSON lines?");
    if (!read_more()) {
      line = {buffer_.data() + begin_, length};
      begin_ = end_;
      return length > 0;
    }
    searched = begin_ + length;
  }
}

bool LineReader::read_more() {
  if (is_at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  is_at_end_ = got == 0;
  return got > 0;
}

void LineReader::skip_to(const LinePosition& position) {
  char last = '\n';
  while (position_.offset < position.offset) {
    if (begin_ == end_ && !read_more()) break;
    const size_t count = std::min<uint64_t>(end_ - begin_, position.offset - position_.offset);
    const char* const from = buffer_.data() + begin_;
    last = from[count - 1];
    position_.lines += std::count(from, from + count, '\n');
    position_.offset += count;
    begin_ += count;
  }
  const bool is_end = last != '\n' && begin_ == end_ && !read_more();
  if (is_end) ++position_.lines;  // the last line has no line end
  TITAN_CHECK((last == '\n' || is_end) && position_.offset == position.offset &&
                  position_.lines == position.lines,
              data, "cannot continue '", bytes_->name(), "' at byte ", position.offset,
              " after line ", position.lines,
              ": no such line ends there; was the position saved with another data set?");
  line_offset_ = position_.offset;
}

}  // namespace titan::datasets
