// The output of titan tokenize: PREFIX.bin and PREFIX.idx in Megatron's format, one sequence per
// document, and the partial files before completion. Used by tokenization.cpp.
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
  std::filesystem::path sizes_part;  ///< i32 per document so far, so that they need no memory
  std::filesystem::path idx_part, journal;
};

/// `prefix` with each suffix.
TokenFilePaths token_file_paths(const std::filesystem::path& prefix);

/// Throws a config Error when one of the files cannot be created or renamed: its path is not a
/// regular file, or its folder cannot be created or written. Creates nothing.
void require_usable(const TokenFilePaths& paths);

/// Whether the files have at least this many documents and tokens. For a complete output the .bin,
/// under either name, must have exactly these.
bool token_files_hold(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                      int64_t tokens, bool is_complete);

/// The two files that grow: ids and document sizes.
class TokenFiles {
 public:
  /// Opens or creates the files and truncates them to `documents` with `tokens`. Throws a data
  /// Error when they hold less.
  TokenFiles(const TokenFilePaths& paths, TokenWidth width, int64_t documents, int64_t tokens);

  void append(const TokenPiece& piece);
  int64_t documents() const { return sizes_.size() / 4; }
  int64_t tokens() const { return bin_.size() / static_cast<int64_t>(width_); }
  void sync();

 private:
  const TokenWidth width_;
  GrowingFile bin_, sizes_;
};

/// Makes the .idx from the sizes and renames both files, .bin first, .idx last, so that an .idx
/// implies a complete pair. Safe to repeat after a kill at any point. Calls `is_wanted` now and
/// then and stops when it returns false; returns whether it finished.
bool finish_token_files(const TokenFilePaths& paths, TokenWidth width, int64_t documents,
                        int64_t tokens, const std::function<bool()>& is_wanted);

}  // namespace titan::tokenising
