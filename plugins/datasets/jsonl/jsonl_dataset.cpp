// See jsonl_dataset.h.
#include "jsonl_dataset.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <titan/error.h>

#include "line_index.h"
#include "text_field.h"

namespace titan::datasets {
namespace {

/// Documents row, row + num_rows, ... in the order of the files; every epoch is the same.
class JsonlStream final : public DocumentStream {
 public:
  JsonlStream(const JsonlDataset& dataset, const RowShard& shard)
      : dataset_(dataset), shard_(shard), next_(shard.row) {}

  bool next(Document& document) override {
    if (next_ >= dataset_.size()) return false;
    document.text = dataset_.text(next_, file_);
    document.tokens.clear();
    document.is_tokenised = false;
    next_ += shard_.num_rows;
    return true;
  }
  void start_epoch(int64_t epoch) override {
    epoch_ = epoch;
    next_ = shard_.row;
  }
  Value state() const override { return Value::map({{"epoch", epoch_}, {"next", next_}}); }
  void restore(const Value& state) override {
    const int64_t epoch = integer(state, "epoch");
    const int64_t next = integer(state, "next");
    TITAN_CHECK(epoch >= 0, data, "cannot restore a data set position: epoch ", epoch,
                " is negative");
    const bool is_of_row = next >= shard_.row && (next - shard_.row) % shard_.num_rows == 0;
    TITAN_CHECK(is_of_row && next - shard_.num_rows < dataset_.size(), data,
                "cannot restore a data set position: document ", next, " is not one of row ",
                shard_.row, " of ", shard_.num_rows, " in a data set of ", dataset_.size(),
                " documents; was it saved with another data set or batch size?");
    epoch_ = epoch;
    next_ = next;
  }

 private:
  static int64_t integer(const Value& state, std::string_view name) {
    const Value* member = state.find(name);
    TITAN_CHECK(member && member->is_integer(), data,
                "cannot restore a data set position: it has no integer '", name, "'");
    return member->as_integer();
  }

  const JsonlDataset& dataset_;
  RowShard shard_;
  int64_t epoch_ = 0;
  int64_t next_;
  InputFile file_;
};

}  // namespace

JsonlDataset::JsonlDataset(const JsonlOptions& options, DatasetContext context)
    : field_(options.field) {
  TITAN_CHECK(!field_.empty(), config, "option 'field' of dataset 'jsonl' must not be empty");
  for (SourceFile& source : find_source_files(context.path)) {
    InputFile file(source.path);
    const size_t first = starts_.size();
    index_lines(file, starts_);
    files_.push_back({std::move(source), file.size(), first});
    if (starts_.size() > first) text(static_cast<int64_t>(first), file);
  }
  TITAN_CHECK(!starts_.empty(), data, "data set '", context.path, "' holds no document");
}

std::unique_ptr<DocumentStream> JsonlDataset::open(const RowShard& shard) const {
  TITAN_ASSERT(shard.row >= 0 && shard.row < shard.num_rows, "row ", shard.row, " of ",
               shard.num_rows);
  TITAN_CHECK(shard.num_rows <= size(), data, "the data set holds ", size(),
              " documents, fewer than the ", shard.num_rows,
              " rows of a global batch; lower the batch size or give more documents");
  return std::make_unique<JsonlStream>(*this, shard);
}

std::string JsonlDataset::text(int64_t index, InputFile& file) const {
  const auto document = static_cast<size_t>(index);
  const auto behind =
      std::upper_bound(files_.begin(), files_.end(), document,
                       [](size_t wanted, const IndexedFile& f) { return wanted < f.first; });
  const IndexedFile& indexed = *std::prev(behind);
  if (!file.is_open() || file.path() != indexed.source.path) {
    file = InputFile(indexed.source.path);
    TITAN_CHECK(file.size() == indexed.num_bytes, io, "'", file.path().string(),
                "' has changed from ", indexed.num_bytes, " to ", file.size(),
                " bytes since the data set was opened");
  }
  const size_t next_first = behind == files_.end() ? starts_.size() : behind->first;
  const uint64_t begin = starts_[document];
  const uint64_t end = document + 1 < next_first ? starts_[document + 1] : indexed.num_bytes;
  std::string line;
  file.read(begin, end, line);
  try {
    return text_field(line, field_);
  } catch (const Error& error) {
    fail(error.kind(), file.path().string(), ":", line_number(file, begin), ": ", error.message());
  }
}

std::string JsonlDataset::fingerprint() const {
  std::string content = field_ + '\0';
  for (size_t i = 0; i < files_.size(); ++i) {
    const size_t end = i + 1 < files_.size() ? files_[i + 1].first : starts_.size();
    content += files_[i].source.name + '\0' + std::to_string(files_[i].num_bytes) + '\0' +
               std::to_string(end - files_[i].first) + '\0';
  }
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex.data();
}

}  // namespace titan::datasets
