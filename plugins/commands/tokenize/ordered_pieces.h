// Passes tokenized pieces from several workers to the writer in the order of their blocks, with
// bounded memory. Used by token_pipeline.cpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "document_blocks.h"

namespace titan::tokenising {

/// Consecutive documents of one block, tokenized.
struct TokenPiece {
  int64_t block = 0;
  std::string bytes = {};           ///< ids in the file's format
  std::vector<int32_t> sizes = {};  ///< ids of each document
  int64_t text_bytes = 0;
  std::optional<SourcePosition> end = {};  ///< present on the last piece of a block
  std::exception_ptr error = {};           ///< why the next document cannot be read; the last piece
};

/// Thread-safe: many workers put, one writer takes.
class OrderedPieces {
 public:
  enum class Taken { piece, end, nothing_yet };

  /// Workers wait while more than `most_bytes` are queued, except the worker of the writer's next
  /// block. This worker can always put, which avoids deadlock.
  explicit OrderedPieces(int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// False when it was closed: the worker should stop.
  bool put(TokenPiece piece);
  /// Sets the total number of blocks.
  void end_at(int64_t num_blocks);
  /// Waits at most `seconds` for the next piece in order.
  Taken take(TokenPiece& piece, double seconds);
  /// Wakes all waiting threads; the pieces are no longer needed.
  void close();

 private:
  const int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable can_put_, can_take_;
  std::map<int64_t, std::deque<TokenPiece>> waiting_;  // by block
  int64_t bytes_ = 0;                                  // of all pieces in waiting_
  int64_t next_ = 0;                                   // the writer's block
  std::optional<int64_t> num_blocks_;
  bool is_closed_ = false;
};

}  // namespace titan::tokenising
