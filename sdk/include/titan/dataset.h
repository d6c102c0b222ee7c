// Plugin kind `dataset`: where documents come from. No torch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// One document: text, or tokens when the source is tokenised already.
struct Document {
  std::string text;
  std::vector<int32_t> tokens;  ///< used instead of `text` when `is_tokenised`
  bool is_tokenised = false;
};

/// One row of the global batch: documents are dealt round-robin to the rows, so that row r of n
/// reads r, r + n, ...
struct RowShard {
  int64_t row = 0;
  int64_t num_rows = 1;
};

/// What the run lends to a dataset.
struct DatasetContext {
  std::string path;  ///< [training] dataset_path; empty = the dataset's own default
  uint64_t seed = 0;
};

/// The documents of one row. One thread at a time; several streams of one Dataset may be read by
/// several threads.
class TITAN_API DocumentStream {
 public:
  virtual ~DocumentStream();

  /// [loader thread] The next document of this row; false at the end of the epoch. Errors name file
  /// and record.
  virtual bool next(Document& document) = 0;
  /// [loader thread] Starts from the beginning; the order may depend on (seed, epoch) only. Called
  /// for epoch 0 too.
  virtual void start_epoch(int64_t epoch) = 0;
  /// Position as a small value; `restore(state())` continues exactly here.
  virtual Value state() const = 0;
  virtual void restore(const Value& state) = 0;
};

/// One source, opened once per process. What all rows share (an index of lines, a memory map) lives
/// here.
class TITAN_API Dataset {
 public:
  static constexpr const char* kKind = "dataset";
  using Interface = Dataset;
  using Context = DatasetContext;

  virtual ~Dataset();

  /// [trainer thread, before the loader starts] The stream of one row; the Dataset outlives it.
  virtual std::unique_ptr<DocumentStream> open(const RowShard& shard) const = 0;
  /// Number of documents in one epoch, over all rows; absent when only reading to the end would
  /// tell.
  virtual std::optional<int64_t> num_documents() const = 0;
  /// Changes when the content changes (sizes, counts, names): a resumed run compares it.
  virtual std::string fingerprint() const = 0;
};

}  // namespace titan
