// See parquet_file.h.
#include "plugins/datasets/parquet/arrow/parquet_file.h"

#include <exception>
#include <system_error>
#include <utility>

#include <arrow/io/file.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>

#include <titan/error.h>

#include "plugins/datasets/parquet/arrow/column_values.h"

namespace titan::datasets {
namespace {

constexpr int64_t kBatchRows = 1024;

/// Result of `call`; exceptions of Arrow and Parquet become an Error naming the file.
template <class Call>
auto guarded(const std::filesystem::path& path, Call call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "cannot read '", path.string(), "' as Parquet: ", error.what());
  }
}

void check(const arrow::Status& status, const std::filesystem::path& path) {
  TITAN_CHECK(status.ok(), data, "cannot read '", path.string(),
              "' as Parquet: ", status.message());
}

template <class T>
T value_of(arrow::Result<T> result, const std::filesystem::path& path) {
  check(result.status(), path);
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::io::ReadableFile> open_input(const std::filesystem::path& path) {
  // opening a pipe would block
  std::error_code ignored;
  TITAN_CHECK(
      !std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored),
      io, "cannot read '", path.string(), "': it is not a regular file");
  auto opened = arrow::io::ReadableFile::Open(path.string());
  TITAN_CHECK(opened.ok(), io, "cannot open '", path.string(), "': ", opened.status().message());
  return std::move(opened).ValueUnsafe();
}

std::unique_ptr<parquet::arrow::FileReader> make_reader(
    const std::filesystem::path& path, std::shared_ptr<arrow::io::ReadableFile> input,
    std::shared_ptr<parquet::FileMetaData> footer) {
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.enable_buffered_stream();              // reads pages on demand, not the whole column
  properties.set_page_checksum_verification(true);  // if the file has checksums
  parquet::ArrowReaderProperties arrow_properties(/*use_threads=*/false);
  arrow_properties.set_pre_buffer(false);
  arrow_properties.set_batch_size(kBatchRows);
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(std::move(input), properties, std::move(footer)), path);
  return value_of(builder.properties(arrow_properties)->Build(), path);
}

std::string listed(const arrow::Schema& schema) {
  std::string names;
  for (const auto& field : schema.fields())
    names += (names.empty() ? "'" : ", '") + field->name() + "'";
  return names.empty() ? "none" : names;
}

}  // namespace

RowGroupColumn::RowGroupColumn(std::filesystem::path path, int64_t num_rows,
                               std::unique_ptr<arrow::RecordBatchReader> batches)
    : path_(std::move(path)), num_rows_(num_rows), batches_(std::move(batches)) {}

void RowGroupColumn::go_to(int64_t row) {
  TITAN_ASSERT(row >= row_ && row < num_rows_, "row ", row, " of ", num_rows_, " behind ", row_);
  guarded(path_, [&] {
    while (!values_ || row >= first_row_ + values_->length()) {
      if (values_) first_row_ += values_->length();
      std::shared_ptr<arrow::RecordBatch> batch;
      check(batches_->ReadNext(&batch), path_);
      TITAN_CHECK(batch, data, "'", path_.string(), "' holds ", first_row_,
                  " rows in a row group for which its footer counts ", num_rows_);
      values_ = batch->column(0);
      check(values_->Validate(), path_);
    }
  });
  row_ = row;
}

ParquetFile::ParquetFile(std::filesystem::path path, const ParquetColumn& column,
                         std::shared_ptr<parquet::FileMetaData> footer)
    : path_(std::move(path)) {
  guarded(path_, [&] {
    auto input = open_input(path_);
    num_bytes_ = static_cast<uint64_t>(value_of(input->GetSize(), path_));
    reader_ = make_reader(path_, std::move(input), std::move(footer));
    find_column(column);
  });
}

ParquetFile::~ParquetFile() = default;

void ParquetFile::find_column(const ParquetColumn& column) {
  std::shared_ptr<arrow::Schema> schema;
  check(reader_->GetSchema(&schema), path_);
  const int index = schema->GetFieldIndex(column.name);
  const bool is_text_wanted = column.holds == ParquetColumn::Holds::text;
  TITAN_CHECK(index >= 0, data, "'", path_.string(), "' has no column '", column.name,
              "' (or several); its columns are ", listed(*schema), "; name one with option '",
              is_text_wanted ? "field" : "tokens_field", "' of dataset 'parquet'");
  const arrow::DataType& type = *schema->field(index)->type();
  TITAN_CHECK(is_text_wanted ? is_text(type) : is_token_list(type), data, "column '", column.name,
              "' of '", path_.string(), "' holds ", type.ToString(), "; ",
              is_text_wanted ? "text is read from string, large_string or a dictionary of them"
                             : "token ids are read from lists of integers",
              is_text_wanted && is_token_list(type)
                  ? "; name it with option 'tokens_field' if it holds token ids"
                  : "");
  const parquet::SchemaDescriptor& leaves = *reader_->parquet_reader()->metadata()->schema();
  for (int i = 0; i < leaves.num_columns(); ++i)
    if (leaves.GetColumnRoot(i)->name() == column.name) leaves_.push_back(i);
}

std::shared_ptr<parquet::FileMetaData> ParquetFile::footer() const {
  return reader_->parquet_reader()->metadata();
}

int ParquetFile::num_row_groups() const {
  return reader_->num_row_groups();
}

int64_t ParquetFile::num_rows(int group) const {
  return guarded(path_, [&] {
    const int64_t count = reader_->parquet_reader()->metadata()->RowGroup(group)->num_rows();
    TITAN_CHECK(count >= 0, data, "the footer of '", path_.string(), "' counts ", count,
                " rows in row group ", group);
    return count;
  });
}

int64_t ParquetFile::num_nulls(int group) const {
  return guarded(path_, [&]() -> int64_t {
    const auto row_group = reader_->parquet_reader()->metadata()->RowGroup(group);
    // for lists the statistics count the values inside
    if (row_group->schema()->Column(leaves_.front())->max_repetition_level() > 0) return 0;
    const auto statistics = row_group->ColumnChunk(leaves_.front())->statistics();
    return statistics && statistics->HasNullCount() ? statistics->null_count() : 0;
  });
}

std::unique_ptr<RowGroupColumn> ParquetFile::read(int group) const {
  return guarded(path_, [&] {
    auto batches = value_of(reader_->GetRecordBatchReader({group}, leaves_), path_);
    return std::make_unique<RowGroupColumn>(path_, num_rows(group), std::move(batches));
  });
}

}  // namespace titan::datasets
