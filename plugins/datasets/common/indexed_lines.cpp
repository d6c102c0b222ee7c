// See indexed_lines.h.
#include "plugins/datasets/common/indexed_lines.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/bad_lines.h"
#include "plugins/datasets/common/line_index.h"

namespace titan::datasets {
namespace {

/// Accepts the lines that are documents and counts the others.
class GoodLines {
 public:
  GoodLines(const LineFormat& format, BadLines& bad) : format_(format), bad_(bad) {}

  bool operator()(std::string_view line, int64_t line_number) {
    try {
      document_.set_text({});
      format_.parse(line, document_);
      return true;
    } catch (const Error& error) {
      bad_.add(line_number, error.message());
      return false;
    }
  }

 private:
  const LineFormat& format_;
  BadLines& bad_;
  Document document_;  // reused, to keep its memory
};

/// Reads the bytes [begin, end) up to the first line end into `bytes`. The rest is blank or skipped
/// lines and may be long.
std::string_view first_line(const InputFile& file, uint64_t begin, uint64_t end,
                            std::unique_ptr<char[]>& bytes) {
  constexpr size_t kFirstRead = size_t{1} << 20;
  const size_t all = end - begin;
  for (size_t count = std::min(all, kFirstRead);; count = std::min(all, 4 * count)) {
    bytes = std::make_unique_for_overwrite<char[]>(count);
    file.read(begin, begin + count, bytes.get());
    const std::string_view text(bytes.get(), count);
    const size_t newline = text.find('\n');
    if (newline != text.npos || count == all) return text.substr(0, newline);
  }
}

}  // namespace

IndexedLines::IndexedLines(LineFormat format, const std::vector<SourceFile>& files)
    : format_(std::move(format)) {
  for (const SourceFile& source : files) {
    const uint64_t num_bytes = InputFile(source.path).size();
    const size_t first = starts_.size();
    names_.push_back(source.name);
    firsts_.push_back(first);
    files_.add(source.path, num_bytes);
    if (format_.skips_bad_lines) {
      std::atomic<bool> is_told = false;
      BadLines bad(source.path.string(), is_told);
      index_lines(source.path, starts_, GoodLines(format_, bad));
    } else {
      index_lines(source.path, starts_);
      Document document;
      if (starts_.size() > first) read(static_cast<int64_t>(first), document);
    }
  }
}

IndexedLines::Line IndexedLines::line_at(int64_t index) const {
  TITAN_ASSERT(index >= 0 && index < size(), "document ", index, " of ", size());
  const auto document = static_cast<size_t>(index);
  const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), document);
  const auto file = static_cast<size_t>(next - firsts_.begin()) - 1;
  const size_t next_first = next == firsts_.end() ? starts_.size() : *next;
  const bool is_last = document + 1 == next_first;
  return {file, starts_[document], is_last ? files_.num_bytes(file) : starts_[document + 1]};
}

void IndexedLines::read(int64_t index, Document& document) const {
  const Line line = line_at(index);
  const auto file = files_.open(line.file);
  std::unique_ptr<char[]> bytes;
  const std::string_view text = first_line(*file, line.begin, line.end, bytes);
  document.set_text({});
  try {
    format_.parse(text, document);
  } catch (const Error& error) {
    fail(error.kind(), file->path().string(), ":", line_number(*file, line.begin), ": ",
         error.message());
  }
}

std::string IndexedLines::place(int64_t index) const {
  const Line line = line_at(index);
  return names_[line.file] + ":" + std::to_string(line_number(*files_.open(line.file), line.begin));
}

void IndexedLines::add_to(Fingerprint& fingerprint) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    const size_t end = i + 1 < names_.size() ? firsts_[i + 1] : starts_.size();
    fingerprint.add(names_[i]).add(files_.num_bytes(i)).add(end - firsts_[i]);
  }
}

}  // namespace titan::datasets
