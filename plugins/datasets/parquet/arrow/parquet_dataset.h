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
  std::string field = "text";  ///< column of strings that holds the text
  std::string tokens_field;    ///< if not empty: column of lists of integers to read instead
  bool skip_nulls = false;     ///< skip rows without a value
};

/// One shard is one row group; those of the first file come first. Each stream keeps its file open
/// and holds a batch of rows of the column in memory (1,024 rows, and their pages). seek() to a row
/// reads the row group again up to it.
class ParquetDataset final : public StreamedDataset {
 public:
  /// Reads the footers of all files. Throws an Error naming a file that is not Parquet, lacks the
  /// column or has nulls in it. Logs the number of rows that `skip_nulls` skips, as far as the
  /// files' statistics give it.
  ParquetDataset(const ParquetOptions& options, DatasetContext context);

  int64_t num_shards() const override { return static_cast<int64_t>(shards_.size()); }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override;
  /// Hash of the column, the files' names, sizes and the rows of their row groups.
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

  /// [any thread] Throws an io Error if the file's size has changed.
  std::unique_ptr<ParquetFile> open_file(size_t file) const;
  /// Adds a file's row groups to the shards, except empty ones.
  void add(std::filesystem::path path, std::string name);

  ParquetColumn column_;
  bool skip_nulls_;
  std::vector<File> files_;
  std::vector<Shard> shards_;

  // The footers of the files that were opened last, the last one first: row groups of a file are
  // mostly read in succession.
  struct Footer {
    size_t file = 0;
    std::shared_ptr<parquet::FileMetaData> content;
  };
  mutable std::mutex mutex_;
  mutable std::list<Footer> footers_;
};

}  // namespace titan::datasets
