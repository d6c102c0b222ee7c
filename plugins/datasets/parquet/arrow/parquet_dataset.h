// Dataset `parquet`: documents from a column of Parquet files, such as FineWeb's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/parquet/arrow/parquet_file.h"

namespace titan::datasets {

struct ParquetOptions {
  std::string field = "text";  ///< the column of strings that holds the text
  std::string tokens_field;    ///< not empty: a column of lists of integers is read instead
  bool skip_nulls = false;     ///< leave out rows without a value
};

/// One shard is one row group; those of the first file come first. Each stream holds its file open
/// and in memory a batch of rows of the one column (1,024 rows, and the pages they come from).
/// Continuing inside a row group reads it again up to there.
class ParquetDataset final : public StreamedDataset {
 public:
  /// Reads the footers of all files. Throws an Error naming the file that is none, lacks the column
  /// or has nulls in it. Logs how many rows `skip_nulls` leaves out, as far as the files say.
  ParquetDataset(const ParquetOptions& options, DatasetContext context);

  int64_t num_shards() const override { return static_cast<int64_t>(shards_.size()); }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override;
  /// Of the column, the files' names, sizes and the rows of their row groups.
  std::string fingerprint() const override;

 private:
  struct File {
    std::filesystem::path path;
    std::string name;
    uint64_t num_bytes = 0;
  };
  struct Shard {
    size_t file = 0;
    int row_group = 0;
    int64_t num_rows = 0;
  };
  class Stream;

  /// [any thread] Throws an io Error when the file is not what it was.
  std::unique_ptr<ParquetFile> open_file(size_t file) const;
  /// Adds a file's row groups to the shards, but for empty ones.
  void add(std::filesystem::path path, std::string name);

  ParquetColumn column_;
  bool skip_nulls_;
  std::vector<File> files_;
  std::vector<Shard> shards_;

  // The footers of the files that were opened last, the last one first: the row groups of a file
  // are mostly read one after the other.
  struct Footer {
    size_t file = 0;
    std::shared_ptr<parquet::FileMetaData> content;
  };
  mutable std::mutex mutex_;
  mutable std::list<Footer> footers_;
};

}  // namespace titan::datasets
