// Documents from files with one JSON object a line. Used by the datasets `jsonl`, `c4` and
// `messages`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/json_lines_options.h"
#include "plugins/datasets/common/line_format.h"
#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {

class IndexedLines;
class StreamedLines;

/// .jsonl and .json, plain and with .gz and .zst
const std::vector<std::string>& json_lines_suffixes();

/// Indexed if all files are plain and `index` is set, else streamed with a shard for each file,
/// because compressed files can only be read from the start. Blank lines are skipped. Any other
/// line that is not a document is an Error naming file and line, or is counted and skipped with
/// skip_bad_lines.
class JsonLines : public Dataset {
 public:
  /// `path`: the data set path, for messages. Throws a data Error if the files hold no document.
  JsonLines(LineFormat format, bool index, const std::string& path,
            const std::vector<SourceFile>& files);
  /// For text documents.
  JsonLines(const JsonLinesOptions& options, const std::string& path,
            const std::vector<SourceFile>& files);
  ~JsonLines() override;

  const IndexedDocuments* indexed() const override;
  const StreamedDocuments* streamed() const override;
  /// Hash of the options, the files' names in the data set, their sizes and, if indexed, numbers of
  /// documents. Moving a data set does not change it.
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::unique_ptr<IndexedLines> indexed_;
  std::unique_ptr<StreamedLines> streamed_;
  std::string fingerprint_;
};

}  // namespace titan::datasets
