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

/// Indexed when all files are plain and `index` is set, else streamed with a shard for each file:
/// what is compressed can only be read from its start. Blank lines are skipped. Anything else that
/// is no document is an Error naming file and line, or counted and passed over when asked.
class JsonLines : public Dataset {
 public:
  /// `path`: what the files were found by, for messages. Throws a data Error when there is no
  /// document in them.
  JsonLines(LineFormat format, bool index, const std::string& path,
            const std::vector<SourceFile>& files);
  /// Of texts.
  JsonLines(const JsonLinesOptions& options, const std::string& path,
            const std::vector<SourceFile>& files);
  ~JsonLines() override;

  const IndexedDocuments* indexed() const override;
  const StreamedDocuments* streamed() const override;
  /// Of the options, the files' names in the data set, their sizes and, when indexed, numbers of
  /// documents: moving a data set keeps it.
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::unique_ptr<IndexedLines> indexed_;
  std::unique_ptr<StreamedLines> streamed_;
  std::string fingerprint_;
};

}  // namespace titan::datasets
