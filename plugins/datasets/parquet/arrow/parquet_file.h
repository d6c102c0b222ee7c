// One Parquet file, of which one column is read. Used by the dataset `parquet`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <arrow/array/array_base.h>
#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>

namespace titan::datasets {

/// Which column is read, and what it has to hold.
struct ParquetColumn {
  std::string name;
  enum class Holds { text, tokens } holds = Holds::text;
};

/// The column of one row group, from its first row on, a batch of rows at a time: in memory are a
/// batch and the page it comes from, whatever the size of the row group.
class RowGroupColumn {
 public:
  RowGroupColumn(std::filesystem::path path, int64_t num_rows,
                 std::unique_ptr<arrow::RecordBatchReader> batches);

  /// Goes forward to row `row` < the group's number of rows. Throws a data Error naming the file
  /// when the group cannot be read up to there.
  void go_to(int64_t row);
  /// Where go_to() went to, as a row of `values()`.
  const arrow::Array& values() const { return *values_; }
  int64_t row() const { return row_ - first_row_; }

 private:
  std::filesystem::path path_;
  int64_t num_rows_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Array> values_;  // the present batch; null before the first
  int64_t first_row_ = 0;                 // of the batch, in the group
  int64_t row_ = 0;
};

/// All Errors name the file: whatever Arrow says of it is a data Error, what the system says an io
/// Error.
class ParquetFile {
 public:
  /// Reads the footer, unless it is given: that of a file with many row groups takes a while.
  /// Throws a data Error when there is no such column (naming those there are) or it holds
  /// something else (naming its type).
  ParquetFile(std::filesystem::path path, const ParquetColumn& column,
              std::shared_ptr<parquet::FileMetaData> footer = nullptr);
  ~ParquetFile();

  std::shared_ptr<parquet::FileMetaData> footer() const;
  uint64_t num_bytes() const { return num_bytes_; }
  int num_row_groups() const;
  int64_t num_rows(int group) const;
  /// How many rows of the group have no value, where the file says so; else 0.
  int64_t num_nulls(int group) const;
  /// Lives no longer than the file.
  std::unique_ptr<RowGroupColumn> read(int group) const;

 private:
  void find_column(const ParquetColumn& column);

  std::filesystem::path path_;
  uint64_t num_bytes_ = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int> leaves_;  // the file's columns that make up the one that is read
};

}  // namespace titan::datasets
