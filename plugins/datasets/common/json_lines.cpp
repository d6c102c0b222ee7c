// See json_lines.h.
#include "plugins/datasets/common/json_lines.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/byte_reader.h"
#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/indexed_lines.h"
#include "plugins/datasets/common/input_file.h"
#include "plugins/datasets/common/streamed_lines.h"
#include "plugins/datasets/common/text_field.h"

namespace titan::datasets {
namespace {

LineFormat text_format(const JsonLinesOptions& options) {
  TITAN_CHECK(!options.field.empty(), config, "option 'field' of the data set must not be empty");
  return {.parse = [field = options.field](
                       std::string_view line,
                       Document& document) { read_text_field(line, field, document.text); },
          .description = options.field,
          .skips_bad_lines = options.skip_bad_lines};
}

/// Without this check the error would be about malformed JSON.
void refuse_parquet(const std::filesystem::path& path) {
  constexpr std::string_view kMagic = "PAR1";
  char bytes[kMagic.size()];
  const size_t count = InputFile(path).read_some(0, bytes, sizeof bytes);
  TITAN_CHECK(std::string_view(bytes, count) != kMagic, config, "'", path.string(),
              "' is a Parquet file, and this data set reads JSON lines; choose the data set "
              "\"parquet\" for it, or give a path of .jsonl or .json files");
}

}  // namespace

const std::vector<std::string>& json_lines_suffixes() {
  static const std::vector<std::string> kSuffixes = {".jsonl",   ".json",      ".jsonl.gz",
                                                     ".json.gz", ".jsonl.zst", ".json.zst"};
  return kSuffixes;
}

JsonLines::JsonLines(const JsonLinesOptions& options, const std::string& path,
                     const std::vector<SourceFile>& files)
    : JsonLines(text_format(options), options.index, path, files) {}

JsonLines::JsonLines(LineFormat format, bool index, const std::string& path,
                     const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) refuse_parquet(file.path);
  const bool is_indexed =
      index && std::none_of(files.begin(), files.end(),
                            [](const SourceFile& file) { return is_compressed(file.path); });
  Fingerprint fingerprint;
  fingerprint.add(is_indexed ? "indexed lines" : "streamed lines");
  fingerprint.add(format.description).add(format.skips_bad_lines);
  bool has_documents = false;
  if (is_indexed) {
    indexed_ = std::make_unique<IndexedLines>(std::move(format), files);
    indexed_->add_to(fingerprint);
    has_documents = indexed_->size() > 0;
  } else {
    streamed_ = std::make_unique<StreamedLines>(std::move(format), files);
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
