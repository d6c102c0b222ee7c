// How each kind of file is read. Used by the fuzzer of tokenizers and data sets and by the check of
// the hostile files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/entries.h"

namespace titan::fuzz {

/// One kind of file.
struct FileKind {
  const char* name;  ///< of the entry, and of its folder of hostile files
  /// Reads the content of a file `name` and uses the result. Throws an Error for an invalid file,
  /// and std::logic_error when the result contradicts itself.
  void (*read)(std::string_view content, const std::string& name);
  std::vector<std::string> (*corpus)();
  void (*repair)(std::string& input);  ///< see Entry
};

extern const FileKind kTokenizerJson, kTiktoken, kSentencepiece, kMegatronIndex, kJsonl,
    kPipelineCsv, kChatTemplate;

/// All kinds.
std::vector<FileKind> file_kinds();

/// Throws std::logic_error.
void require(bool condition, const char* what);

}  // namespace titan::fuzz
