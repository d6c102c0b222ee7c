// See streamed_lines.h.
#include "plugins/datasets/common/streamed_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/bad_lines.h"
#include "plugins/datasets/common/input_file.h"
#include "plugins/datasets/common/line_reader.h"

namespace titan::datasets {
namespace {

uint64_t natural_number(const Value& position, std::string_view name) {
  const Value* member = position.find(name);
  TITAN_CHECK(member && member->is_integer() && member->as_integer() >= 0, data,
              "cannot continue at data set position ", to_json(position), ": it has no number '",
              name, "' of at least 0");
  return static_cast<uint64_t>(member->as_integer());
}

class LineStream final : public DocumentStream {
 public:
  LineStream(const LineFormat& format, const SourceFile& source, std::atomic<bool>& is_told)
      : format_(format),
        source_(source),
        reader_(read_unpacked(source.path)),
        bad_lines_(source.path.string(), is_told) {}

  bool next(Document& document) override {
    for (std::string_view line; next_line(line);) {
      try {
        document.set_text({});
        format_.parse(line, document);
        return true;
      } catch (const Error& error) {
        if (!format_.skips_bad_lines)
          fail(error.kind(), source_.path.string(), ":", line_number_.load(), ": ",
               error.message());
        bad_lines_.add(line_number_, error.message());
      }
    }
    return false;
  }

  bool skip() override {
    // bad lines do not count as documents here either
    if (format_.skips_bad_lines) return next(skipped_);
    std::string_view line;
    return next_line(line);
  }

  Value position() const override {
    const LinePosition& at = reader_.position();
    return Value::map({{"lines", at.lines}, {"offset", static_cast<int64_t>(at.offset)}});
  }

  void seek(const Value& position) override {
    const LinePosition target{static_cast<int64_t>(natural_number(position, "lines")),
                              natural_number(position, "offset")};
    if (is_compressed(source_.path)) {
      reader_ = LineReader(read_unpacked(source_.path));
      reader_.skip_to(target);
    } else {
      check_line_end(target);
      reader_ = LineReader(read_file(source_.path, target.offset), target);
    }
    line_number_ = target.lines;
  }

  std::string place() const override {
    return source_.name + ":" + std::to_string(line_number_.load());
  }

 private:
  bool next_line(std::string_view& line) {
    if (!reader_.next(line)) return false;
    line_number_ = reader_.position().lines;
    return true;
  }
  /// Checks a position in a plain file as far as possible without reading all of it.
  void check_line_end(const LinePosition& target) const {
    const InputFile file(source_.path);
    const auto lines = static_cast<uint64_t>(target.lines);
    bool is_line_end = target.offset <= file.size() && lines <= target.offset &&
                       (lines == 0) == (target.offset == 0);
    if (is_line_end && target.offset > 0 && target.offset < file.size()) {
      char before = 0;
      file.read(target.offset - 1, target.offset, &before);
      is_line_end = before == '\n';
    }
    TITAN_CHECK(is_line_end, data, "cannot continue '", source_.path.string(), "' at byte ",
                target.offset, " after line ", lines,
                ": no such line ends there; was the position saved with another data set?");
  }

  const LineFormat& format_;
  const SourceFile& source_;
  LineReader reader_;
  BadLines bad_lines_;
  Document skipped_;
  std::atomic<int64_t> line_number_ = 0;  // place() may be called by other threads
};

}  // namespace

StreamedLines::StreamedLines(LineFormat format, const std::vector<SourceFile>& files)
    : format_(std::move(format)) {
  for (const SourceFile& source : files) {
    File& file = files_.emplace_back();
    file.source = source;
    file.num_bytes = InputFile(source.path).size();
  }
}

std::unique_ptr<DocumentStream> StreamedLines::open(int64_t shard) const {
  TITAN_ASSERT(shard >= 0 && shard < num_shards(), "shard ", shard, " of ", num_shards());
  const File& file = files_[static_cast<size_t>(shard)];
  const uint64_t num_bytes = InputFile(file.source.path).size();
  TITAN_CHECK(num_bytes == file.num_bytes, io, "'", file.source.path.string(),
              "' has changed from ", file.num_bytes, " to ", num_bytes,
              " bytes since the data set was opened");
  return std::make_unique<LineStream>(format_, file.source, file.is_told);
}

bool StreamedLines::has_documents() const {
  Document document;
  std::atomic<bool> is_told = true;  // no warning here: later readers count the bad lines
  return std::any_of(files_.begin(), files_.end(), [&](const File& file) {
    return LineStream(format_, file.source, is_told).next(document);
  });
}

void StreamedLines::add_to(Fingerprint& fingerprint) const {
  for (const File& file : files_) fingerprint.add(file.source.name).add(file.num_bytes);
}

}  // namespace titan::datasets
