// See line_index.h.
#include "plugins/datasets/common/line_index.h"

#include <algorithm>

#include "plugins/datasets/common/line_reader.h"

namespace titan::datasets {

void index_lines(const std::filesystem::path& file, std::vector<uint64_t>& starts,
                 const LineFilter& is_wanted) {
  LineReader reader(read_file(file));
  for (std::string_view line; reader.next(line);)
    if (!is_wanted || is_wanted(line, reader.position().lines))
      starts.push_back(reader.line_offset());
}

int64_t line_number(const InputFile& file, uint64_t offset) {
  std::vector<char> buffer(size_t{256} << 10);
  int64_t line = 1;
  for (uint64_t at = 0; at < offset;) {
    const size_t got =
        file.read_some(at, buffer.data(), std::min<uint64_t>(buffer.size(), offset - at));
    if (got == 0) break;
    line += std::count(buffer.data(), buffer.data() + got, '\n');
    at += got;
  }
  return line;
}

}  // namespace titan::datasets
