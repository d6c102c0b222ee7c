// Dataset `text_folder`: every text file below a folder is one document.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {

/// What to do with bytes that are not UTF-8.
enum class InvalidUtf8 {
  refuse,   ///< throw an Error naming the file and the byte
  replace,  ///< replace them by U+FFFD, as Python's errors="replace"
};

struct TextFolderOptions {
  std::vector<std::string> suffixes = {".txt", ".md"};  ///< of the files that are read
  InvalidUtf8 invalid_utf8 = InvalidUtf8::refuse;
};

/// Immutable: any number of threads may read. The text is the file's content unchanged, line ends
/// included, without a byte order mark. Empty files are skipped. Order: by name, as text.
class TextFolderDataset final : public IndexedDataset {
 public:
  /// Lists the folder tree and the sizes of its files.
  TextFolderDataset(const TextFolderOptions& options, DatasetContext context);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  void read(int64_t index, Document& document) const override;
  std::string place(int64_t index) const override;
  /// Hash of the files' names in the folder and their sizes.
  std::string fingerprint() const override;

 private:
  struct TextFile {
    SourceFile source;
    uint64_t num_bytes = 0;
  };

  InvalidUtf8 invalid_utf8_;
  std::vector<TextFile> files_;
};

}  // namespace titan::datasets
