// Tokenises a data set with several threads and gives the tokens in the order of its documents,
// whatever the number of threads. Used by tokenization.cpp.
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

/// How ids become bytes of a .bin file.
enum class TokenWidth : int { two_bytes = 2, four_bytes = 4 };

/// u16 where every id of the vocabulary fits, as Megatron chooses, else i32.
TokenWidth token_width(int64_t vocab_size);

struct PipelineOptions {
  int num_workers = 1;
  int64_t block_bytes = int64_t{1} << 20;         ///< text that a worker takes at once
  int64_t piece_bytes = int64_t{4} << 20;         ///< ids that a worker hands on at once
  int64_t most_waiting_bytes = int64_t{1} << 26;  ///< ids that wait for the writer
};

/// Memory: most_waiting_bytes, and per worker a block, a piece and a document with its ids. Closed
/// and joined by the destructor. Thread: one thread takes.
class TokenPipeline {
 public:
  /// Documents from `start` on. Data set and tokenizer outlive the pipeline.
  TokenPipeline(const Dataset& dataset, const Tokenizer& tokenizer, const Framing& framing,
                SourcePosition start, const PipelineOptions& options);
  ~TokenPipeline();
  TokenPipeline(const TokenPipeline&) = delete;

  /// The next piece; waits at most `seconds`. The first document that cannot be had, in the order
  /// of the data set, is the `error` of a piece that holds what stands before it in its block.
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
