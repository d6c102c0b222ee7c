// See text_folder_dataset.h.
#include "text_folder_dataset.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/input_file.h"
#include "plugins/datasets/common/utf8.h"
#include "text_files.h"

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_empty(const fs::path& path, uint64_t num_bytes) {
  if (num_bytes != kByteOrderMark.size()) return num_bytes == 0;
  std::string content;
  InputFile(path).read(0, num_bytes, content);
  return content == kByteOrderMark;
}

}  // namespace

TextFolderDataset::TextFolderDataset(const TextFolderOptions& options, DatasetContext context)
    : invalid_utf8_(options.invalid_utf8) {
  TITAN_CHECK(!context.path.empty(), config,
              "dataset 'text_folder' needs a path: set [training] dataset_path to a folder");
  std::error_code ignored;
  TITAN_CHECK(fs::is_directory(context.path, ignored), io, "data set path '", context.path, "' is ",
              fs::exists(context.path, ignored) ? "not a folder" : "not there");
  TITAN_CHECK(!options.suffixes.empty(), config,
              "option 'suffixes' of dataset 'text_folder' must not be empty");
  std::string listed;
  for (const std::string& suffix : options.suffixes) listed += " *" + suffix;
  for (SourceFile& source : find_text_files(context.path, options.suffixes)) {
    std::error_code reason;
    const uint64_t num_bytes = fs::file_size(source.path, reason);
    TITAN_CHECK(!reason, io, "cannot read '", source.path.string(), "': ", reason.message());
    if (!is_empty(source.path, num_bytes)) files_.push_back({std::move(source), num_bytes});
  }
  TITAN_CHECK(!files_.empty(), data, "data set folder '", context.path,
              "' holds no non-empty file that matches", listed,
              "; option 'suffixes' sets the suffixes");
}

void TextFolderDataset::read(int64_t index, Document& document) const {
  TITAN_ASSERT(index >= 0 && index < size(), "document ", index, " of ", size());
  const TextFile& text_file = files_[static_cast<size_t>(index)];
  const InputFile file(text_file.source.path);
  TITAN_CHECK(file.size() == text_file.num_bytes, io, "'", file.path().string(),
              "' has changed from ", text_file.num_bytes, " to ", file.size(),
              " bytes since the data set was opened");
  document.set_text({});
  std::string& text = document.text;
  file.read(0, file.size(), text);
  const std::string encoding = utf16_hint(text);
  TITAN_CHECK(encoding.empty() || invalid_utf8_ == InvalidUtf8::replace, data, "'",
              file.path().string(), "' is not UTF-8", encoding);
  if (const size_t good = valid_utf8_prefix(text); good != text.size()) {
    TITAN_CHECK(invalid_utf8_ == InvalidUtf8::replace, data, "'", file.path().string(),
                "' is not UTF-8 at byte ", good,
                "; convert it, or set invalid_utf8 = \"replace\" to replace such bytes by U+FFFD");
    text = replace_invalid_utf8(text);
  }
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
}

std::string TextFolderDataset::place(int64_t index) const {
  return files_.at(static_cast<size_t>(index)).source.name;
}

std::string TextFolderDataset::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add("text files").add(static_cast<int>(invalid_utf8_));
  for (const TextFile& file : files_) fingerprint.add(file.source.name).add(file.num_bytes);
  return fingerprint.hex();
}

}  // namespace titan::datasets
