// Random access to the JSON lines of plain files. Used by the data sets of JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/line_format.h"
#include "plugins/datasets/common/open_files.h"
#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {

/// An index of all lines, 8 bytes each, built once; immutable, so any number of threads may read.
class IndexedLines final : public IndexedDocuments {
 public:
  /// Reads all files once to index them, and parses the first document of each, so that a wrong
  /// field is found early. With skips_bad_lines it parses every line.
  IndexedLines(LineFormat format, const std::vector<SourceFile>& files);

  int64_t size() const override { return static_cast<int64_t>(starts_.size()); }
  void read(int64_t index, Document& document) const override;
  std::string place(int64_t index) const override;

  /// Adds each file's name, size and number of documents.
  void add_to(Fingerprint& fingerprint) const;

 private:
  struct Line {
    size_t file;
    uint64_t begin, end;  // `end`: includes lines after it that are not documents
  };
  Line line_at(int64_t index) const;

  LineFormat format_;
  std::vector<std::string> names_;  // of the files
  std::vector<size_t> firsts_;      // each file's first document; the next file's if it has none
  OpenFiles files_;
  std::vector<uint64_t> starts_;  // of all documents, in their files
};

}  // namespace titan::datasets
