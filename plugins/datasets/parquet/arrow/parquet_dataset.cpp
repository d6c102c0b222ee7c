// See parquet_dataset.h.
#include "plugins/datasets/parquet/arrow/parquet_dataset.h"

#include <atomic>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/source_files.h"
#include "plugins/datasets/common/utf8.h"
#include "plugins/datasets/parquet/arrow/column_values.h"

namespace titan::datasets {
namespace {

ParquetColumn column_of(const ParquetOptions& options) {
  if (!options.tokens_field.empty()) return {options.tokens_field, ParquetColumn::Holds::tokens};
  TITAN_CHECK(!options.field.empty(), config,
              "option 'field' of dataset 'parquet' must not be empty");
  return {options.field, ParquetColumn::Holds::text};
}

}  // namespace

/// The rows of one row group.
class ParquetDataset::Stream final : public DocumentStream {
 public:
  Stream(const ParquetDataset& dataset, const Shard& shard)
      : dataset_(dataset), shard_(shard), file_(dataset.open_file(shard.file)) {}

  bool next(Document& document) override {
    if (!find_value()) return false;
    try {
      read(document);
    } catch (Error& error) {
      error.with_context("while reading " + place());
      throw;
    }
    ++row_;
    return true;
  }
  bool skip() override {
    // values matter only if rows are skipped
    if (dataset_.skip_nulls_ ? !find_value() : row_ >= shard_.num_rows) return false;
    ++row_;
    return true;
  }

  Value position() const override { return Value::map({{"row", row_.load()}}); }
  void seek(const Value& position) override {
    const Value* row = position.find("row");
    TITAN_CHECK(row && row->is_integer(), data,
                "a position in a Parquet file has an integer "
                "'row', got ",
                to_json(position));
    TITAN_CHECK(row->as_integer() >= 0 && row->as_integer() <= shard_.num_rows, data, "row ",
                row->as_integer(), " is not one of the ", shard_.num_rows, " rows of ", place());
    if (row->as_integer() < row_) column_.reset();
    row_ = row->as_integer();
  }
  std::string place() const override {
    return detail::concat(dataset_.files_[shard_.file].name, ": row group ", shard_.row_group,
                          ", row ", row_.load());
  }

 private:
  /// Moves the column to row row_.
  void go_to_row() {
    if (!column_) column_ = file_->read(shard_.row_group);
    try {
      column_->go_to(row_);
    } catch (Error& error) {
      error.with_context("while reading " + place());
      throw;
    }
  }

  /// Goes to the next row that is a document; false at the end.
  bool find_value() {
    for (; row_ < shard_.num_rows; ++row_) {
      go_to_row();
      if (!dataset_.skip_nulls_ || !is_null(column_->values(), column_->row())) return true;
    }
    return false;
  }

  void read(Document& document) const {
    const arrow::Array& values = column_->values();
    const int64_t row = column_->row();
    const ParquetColumn& column = dataset_.column_;
    TITAN_CHECK(!is_null(values, row), data, place(), ": column '", column.name,
                "' has no value (null); skip such rows with skip_nulls = true in "
                "[dataset.parquet]");
    if (column.holds == ParquetColumn::Holds::tokens) {
      document.text.clear();
      document.is_tokenised = true;
      tokens_at(values, row, document.tokens);
      return;
    }
    const std::string_view text = text_at(values, row);
    const size_t good = valid_utf8_prefix(text);
    TITAN_CHECK(good == text.size(), data, place(), ": byte ", good, " of column '", column.name,
                "' is not UTF-8");
    document.set_text(text);
  }

  const ParquetDataset& dataset_;
  const Shard& shard_;
  std::unique_ptr<ParquetFile> file_;
  std::unique_ptr<RowGroupColumn> column_;  // null before the first row is read
  std::atomic<int64_t> row_ = 0;            // the next one; place() may be called by another thread
};

ParquetDataset::ParquetDataset(const ParquetOptions& options, DatasetContext context)
    : column_(column_of(options)), skip_nulls_(options.skip_nulls) {
  for (SourceFile& source : find_source_files(context.path, {".parquet"}))
    add(std::move(source.path), std::move(source.name));
  TITAN_CHECK(!shards_.empty(), data, "data set '", context.path, "' holds no row");
}

void ParquetDataset::add(std::filesystem::path path, std::string name) {
  const ParquetFile file(path, column_);
  int64_t num_nulls = 0;
  for (int group = 0; group < file.num_row_groups(); ++group) {
    const int64_t nulls = file.num_nulls(group);
    TITAN_CHECK(skip_nulls_ || nulls == 0, data, "row group ", group, " of '", path.string(),
                "' has ", nulls, " rows without a value (null) in column '", column_.name,
                "'; skip such rows with skip_nulls = true in [dataset.parquet]");
    num_nulls += nulls;
    const int64_t num_rows = file.num_rows(group);
    if (num_rows > 0) shards_.push_back({files_.size(), group, num_rows});
  }
  if (num_nulls > 0)
    log::warn(detail::concat("dataset 'parquet' skips ", num_nulls, " rows of '", path.string(),
                             "' without a value in column '", column_.name, "'"));
  files_.push_back({std::move(path), std::move(name), file.num_bytes()});
}

std::unique_ptr<ParquetFile> ParquetDataset::open_file(size_t file) const {
  constexpr size_t kMaxFooters = 16;
  std::shared_ptr<parquet::FileMetaData> footer;
  {
    const std::lock_guard lock(mutex_);
    for (auto known = footers_.begin(); known != footers_.end(); ++known) {
      if (known->file != file) continue;
      footer = known->content;
      footers_.splice(footers_.begin(), footers_, known);
      break;
    }
  }
  const File& known = files_[file];
  auto opened = std::make_unique<ParquetFile>(known.path, column_, footer);
  TITAN_CHECK(opened->num_bytes() == known.num_bytes, io, "'", known.path.string(),
              "' has changed from ", known.num_bytes, " to ", opened->num_bytes(),
              " bytes since the data set was opened");
  if (!footer) {
    const std::lock_guard lock(mutex_);
    footers_.push_front({file, opened->footer()});
    if (footers_.size() > kMaxFooters) footers_.pop_back();
  }
  return opened;
}

std::unique_ptr<DocumentStream> ParquetDataset::open(int64_t shard) const {
  TITAN_ASSERT(shard >= 0 && shard < num_shards(), "shard ", shard, " of ", num_shards());
  return std::make_unique<Stream>(*this, shards_[static_cast<size_t>(shard)]);
}

std::string ParquetDataset::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add("parquet").add(column_.name).add(skip_nulls_ ? 1 : 0);
  for (const File& file : files_) fingerprint.add(file.name).add(file.num_bytes);
  for (const Shard& shard : shards_) fingerprint.add(shard.row_group).add(shard.num_rows);
  return fingerprint.hex();
}

}  // namespace titan::datasets
