// The output of titan tokenize: PREFIX.bin and PREFIX.idx as Megatron reads them, and what they
// grow from. One sequence per document. Used by tokenization.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <titan/files/growing_file.h>

#include "ordered_pieces.h"
#include "token_pipeline.h"

namespace titan::tokenising {

struct TokenFilePaths {
  std::filesystem::path bin, idx;    ///< the result
  std::filesystem::path bin_part;    ///< ids so far
  std::filesystem::path sizes_part;  ///< i32 per document so far, so that memory need not hold them
  std::filesystem::path idx_part, journal;
};

/// `prefix` with each suffix.
TokenFilePaths token_file_paths(const std::filesystem::path& prefix);

/// Throws a config Error where one of the files could not be made, or given its name in the end:
/// something that is no file stands there, or its folder cannot be made or written to. Makes
/// nothing.
void require_usable(const TokenFilePaths& paths);

/// Whether the files have at least this many documents and tokens; of a complete output that the
/// .bin, under either name, has just these.
bool token_files_hold(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                      int64_t tokens, bool is_complete);

/// The two files that grow.
class TokenFiles {
 public:
  /// Opens what is there, or makes it, and cuts it back to `documents` with `tokens`. Throws a data
  /// Error when it holds less.
  TokenFiles(const TokenFilePaths& paths, TokenWidth width, int64_t documents, int64_t tokens);

  void append(const TokenPiece& piece);
  int64_t documents() const { return sizes_.size() / 4; }
  int64_t tokens() const { return bin_.size() / static_cast<int64_t>(width_); }
  void sync();

 private:
  const TokenWidth width_;
  GrowingFile bin_, sizes_;
};

/// Makes the .idx from the sizes and gives both files their names: .bin first, .idx last, so that
/// an .idx stands for a whole pair. May be called again after a kill at any point in it. Asks
/// `is_wanted` now and then, and ends early when it says no; returns whether all is done.
bool finish_token_files(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                        int64_t tokens, const std::function<bool()>& is_wanted);

}  // namespace titan::tokenising
