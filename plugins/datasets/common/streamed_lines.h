// Sequential access to the JSON lines of compressed or very large files. Used by the data sets of
// JSON lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/line_format.h"
#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {

/// Each file is a shard. Positions are {"lines", "offset"}: the lines and (decompressed) bytes read
/// so far. seek() jumps in a plain file and decompresses up to the position in a compressed one.
class StreamedLines final : public StreamedDocuments {
 public:
  /// Reads only the sizes of the files.
  StreamedLines(LineFormat format, const std::vector<SourceFile>& files);

  int64_t num_shards() const override { return static_cast<int64_t>(files_.size()); }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override;

  /// Whether there is a document. Parses the first one, so that a wrong field is found early.
  bool has_documents() const;
  /// Adds each file's name and size.
  void add_to(Fingerprint& fingerprint) const;

 private:
  struct File {
    SourceFile source;
    uint64_t num_bytes = 0;
    mutable std::atomic<bool> is_told = false;  // its bad lines were reported
  };

  LineFormat format_;
  std::deque<File> files_;
};

}  // namespace titan::datasets
