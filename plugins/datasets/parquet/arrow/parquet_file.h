// Reads one column of a Parquet file. Used by the dataset `parquet`.
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

/// The column to read and its required contents.
struct ParquetColumn {
  std::string name;
  enum class Holds { text, tokens } holds = Holds::text;
};

/// Sequential reader of the column in one row group. Only a batch of rows and the page it comes
/// from are in memory, whatever the size of the row group.
class RowGroupColumn {
 public:
  RowGroupColumn(std::filesystem::path path, int64_t num_rows,
                 std::unique_ptr<arrow::RecordBatchReader> batches);

  /// Moves forward to row `row` < the group's number of rows. Throws a data Error naming the file
  /// if the group cannot be read up to it.
  void go_to(int64_t row);
  /// The present batch, and the row of go_to() within it.
  const arrow::Array& values() const { return *values_; }
  int64_t row() const { return row_ - first_row_; }

 private:
  std::filesystem::path path_;
  int64_t num_rows_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Array> values_;  // null before the first batch
  int64_t first_row_ = 0;                 // of the batch, in the group
  int64_t row_ = 0;
};

/// All Errors name the file. Errors of Arrow are data Errors, errors of the system io Errors.
class ParquetFile {
 public:
  /// Reads the footer unless it is given, because that is slow for many row groups. Throws a data
  /// Error if there is no such column (lists the columns) or it has another type (names it).
  ParquetFile(std::filesystem::path path, const ParquetColumn& column,
              std::shared_ptr<parquet::FileMetaData> footer = nullptr);
  ~ParquetFile();

  std::shared_ptr<parquet::FileMetaData> footer() const;
  uint64_t num_bytes() const { return num_bytes_; }
  int num_row_groups() const;
  int64_t num_rows(int group) const;
  /// Number of rows of the group without a value, if the file's statistics give it; else 0.
  int64_t num_nulls(int group) const;
  /// The result must not outlive this object.
  std::unique_ptr<RowGroupColumn> read(int group) const;

 private:
  void find_column(const ParquetColumn& column);

  std::filesystem::path path_;
  uint64_t num_bytes_ = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int> leaves_;  // the Parquet leaf columns of the column
};

}  // namespace titan::datasets
