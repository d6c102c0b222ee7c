// Tokenizes a data set with several threads and returns the tokens in the order of the documents,
// independent of the number of threads. Used by tokenization.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>

#include <titan/framing.h>
#include "document_blocks.h"
#include "ordered_pieces.h"

namespace titan::tokenising {

/// Size of an id in a .bin file.
enum class TokenWidth : int { two_bytes = 2, four_bytes = 4 };

/// u16 if every id of the vocabulary fits, as in Megatron, else i32.
TokenWidth token_width(int64_t vocab_size);

struct PipelineOptions {
  int num_workers = 1;
  int64_t block_bytes = int64_t{1} << 20;         ///< text per block of a worker
  int64_t piece_bytes = int64_t{4} << 20;         ///< ids per piece of a worker
  int64_t most_waiting_bytes = int64_t{1} << 26;  ///< ids queued for the writer
};

/// Memory: most_waiting_bytes, and per worker a block, a piece and a document with its ids. The
/// destructor stops and joins the threads. Thread: one thread calls take().
class TokenPipeline {
 public:
  /// Starts at `start`. Data set and tokenizer outlive the pipeline.
  TokenPipeline(const Dataset& dataset, const Tokenizer& tokenizer, const Framing& framing,
                SourcePosition start, const PipelineOptions& options);
  ~TokenPipeline();
  TokenPipeline(const TokenPipeline&) = delete;

  /// The next piece; waits at most `seconds`. The first unreadable document, in the order of the
  /// data set, is the `error` of a piece that holds the documents before it in its block.
  OrderedPieces::Taken take(TokenPiece& piece, double seconds) {
    return pieces_.take(piece, seconds);
  }

 private:
  void work();
  void tokenise(const DocumentBlock& block, int64_t i, Document& scratch, std::vector<int32_t>& ids,
                TokenPiece& piece);

  const Tokenizer& tokenizer_;
  const Framing framing_;
  const int64_t vocab_size_;
  const TokenWidth width_;
  const PipelineOptions options_;
  DocumentBlocks blocks_;
  OrderedPieces pieces_;
  std::vector<std::thread> workers_;
};

}  // namespace titan::tokenising
