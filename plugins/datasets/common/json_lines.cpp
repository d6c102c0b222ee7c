// See json_lines.h.
#include "plugins/datasets/common/json_lines.h"

#include <algorithm>

#include <titan/error.h>

#include "plugins/datasets/common/byte_reader.h"
#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/indexed_lines.h"
#include "plugins/datasets/common/streamed_lines.h"

namespace titan::datasets {

const std::vector<std::string>& json_lines_suffixes() {
  static const std::vector<std::string> kSuffixes = {".jsonl",   ".json",      ".jsonl.gz",
                                                     ".json.gz", ".jsonl.zst", ".json.zst"};
  return kSuffixes;
}

JsonLines::JsonLines(const JsonLinesOptions& options, const std::string& path,
                     const std::vector<SourceFile>& files) {
  TITAN_CHECK(!options.field.empty(), config, "option 'field' of the data set must not be empty");
  const bool is_indexed =
      options.index && std::none_of(files.begin(), files.end(), [](const SourceFile& file) {
        return is_compressed(file.path);
      });
  Fingerprint fingerprint;
  fingerprint.add(is_indexed ? "indexed lines" : "streamed lines");
  fingerprint.add(options.field).add(options.skip_bad_lines);
  bool has_documents = false;
  if (is_indexed) {
    indexed_ = std::make_unique<IndexedLines>(options, files);
    indexed_->add_to(fingerprint);
    has_documents = indexed_->size() > 0;
  } else {
    streamed_ = std::make_unique<StreamedLines>(options, files);
    streamed_->add_to(fingerprint);
    has_documents = streamed_->has_documents();
  }
  TITAN_CHECK(has_documents, data, "data set '", path, "' holds no document");
  fingerprint_ = fingerprint.hex();
}

JsonLines::~JsonLines() = default;

const IndexedDocuments* JsonLines::indexed() const {
  return indexed_.get();
}

const StreamedDocuments* JsonLines::streamed() const {
  return streamed_.get();
}

}  // namespace titan::datasets
