// What the fuzzer of tokenizers and data sets and the check of the hostile files share: how each
// kind of file is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/entries.h"

namespace titan::fuzz {

/// One kind of file.
struct FileKind {
  const char* name;  ///< of the entry, and of the folder of hostile files
  /// Reads the content of a file `name` and uses what was read. Throws an Error for what is no such
  /// file, and std::logic_error when what was read contradicts itself.
  void (*read)(std::string_view content, const std::string& name);
  std::vector<std::string> (*corpus)();
  void (*repair)(std::string& input);  ///< see Entry
};

extern const FileKind kTokenizerJson, kTiktoken, kSentencepiece, kMegatronIndex, kJsonl,
    kPipelineCsv, kChatTemplate;

/// All of them.
std::vector<FileKind> file_kinds();

/// Throws std::logic_error.
void require(bool condition, const char* what);

}  // namespace titan::fuzz
