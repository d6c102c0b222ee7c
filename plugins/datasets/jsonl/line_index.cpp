// See line_index.h.
#include "line_index.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace titan::datasets {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;  // stays in the second-level cache

/// Calls `visit(offset of the chunk, chunk)` for all chunks of the first `end` bytes in order.
template <class Visit>
void for_each_chunk(const InputFile& file, uint64_t end, Visit visit) {
  std::vector<char> buffer(std::min<uint64_t>(kChunkBytes, end));
  for (uint64_t offset = 0; offset < end;) {
    const size_t wanted = std::min<uint64_t>(buffer.size(), end - offset);
    const size_t got = file.read_some(offset, buffer.data(), wanted);
    if (got == 0) return;
    visit(offset, std::string_view(buffer.data(), got));
    offset += got;
  }
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

}  // namespace

void index_lines(const InputFile& file, std::vector<uint64_t>& starts) {
  bool in_line = false;     // something but white space was seen since the last newline
  uint64_t line_start = 0;  // behind the last newline
  for_each_chunk(file, file.size(), [&](uint64_t offset, std::string_view chunk) {
    const char* at = chunk.data();
    const char* const end = at + chunk.size();
    if (offset == 0 && chunk.starts_with("\xEF\xBB\xBF")) {
      at += 3;
      line_start = 3;
    }
    while (at != end) {
      if (in_line) {
        at = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
        if (!at) return;
        in_line = false;
      }
      if (*at == '\n') {
        line_start = offset + static_cast<uint64_t>(at + 1 - chunk.data());
      } else if (!is_blank(*at)) {
        starts.push_back(line_start);
        in_line = true;
      }
      ++at;
    }
  });
}

int64_t line_number(const InputFile& file, uint64_t offset) {
  int64_t line = 1;
  for_each_chunk(file, offset, [&](uint64_t, std::string_view chunk) {
    line += std::count(chunk.begin(), chunk.end(), '\n');
  });
  return line;
}

}  // namespace titan::datasets
