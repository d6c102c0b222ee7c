// Dataset `jsonl`: text documents, one JSON object a line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "input_file.h"
#include "source_files.h"

namespace titan::datasets {

struct JsonlOptions {
  std::string field = "text";  ///< the member that holds the text
};

/// An index of all lines, built once and shared by the streams; immutable, so any number of threads
/// may read. Blank lines are skipped. Anything else that is no document is an Error naming file and
/// line.
class JsonlDataset final : public Dataset {
 public:
  /// Reads all files once to index them, and the first document of each, so that a wrong `field` is
  /// found early.
  JsonlDataset(const JsonlOptions& options, DatasetContext context);

  /// Throws a data Error when there are fewer documents than rows: some row would have none.
  std::unique_ptr<DocumentStream> open(const RowShard& shard) const override;
  std::optional<int64_t> num_documents() const override { return size(); }
  /// Of the field, the files' names in the data set, their sizes and numbers of lines: moving a
  /// data set keeps it.
  std::string fingerprint() const override;

  int64_t size() const { return static_cast<int64_t>(starts_.size()); }
  /// The text of document `index` in [0, size()). `file` is the caller's: it keeps the file of the
  /// last call open.
  std::string text(int64_t index, InputFile& file) const;

 private:
  struct IndexedFile {
    SourceFile source;
    uint64_t num_bytes = 0;
    size_t first = 0;  // index of its first document; that of the next file when it has none
  };

  std::string field_;
  std::vector<IndexedFile> files_;
  std::vector<uint64_t> starts_;  // of all documents, as offsets in their files
};

}  // namespace titan::datasets
