// Splits a data set into blocks of documents, in its order, for workers to tokenize. Used by
// token_pipeline.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <titan/dataset.h>
#include <titan/value.h>

namespace titan::tokenising {

/// A position between two documents of a data set.
struct SourcePosition {
  int64_t documents = 0;  ///< documents before it
  int64_t shard = 0;      ///< of a streamed data set
  Value in_shard = {};    ///< DocumentStream::position(); null = the start of the shard
};

/// Consecutive documents. A worker passes the same block to claim() again, which reuses the memory
/// of its documents.
struct DocumentBlock {
  int64_t number = 0;  ///< 0, 1, 2, ... in the order of the data set
  int64_t first = 0;   ///< of the data set's documents
  int64_t count = 0;
  SourcePosition end;
  std::vector<Document> documents;  ///< the first `count` of a streamed block; else read later
  std::exception_ptr error;  ///< why the next document cannot be read; this is then the last block
};

/// Thread-safe. For an indexed data set it only assigns ranges, and workers read in parallel. A
/// streamed data set is read here, by one worker at a time.
class DocumentBlocks {
 public:
  /// `block_bytes`: approximate amount of text per block; a block has at least one document.
  DocumentBlocks(const Dataset& dataset, SourcePosition start, int64_t block_bytes);

  /// The next block; false at the end. An error is stored in the block.
  bool claim(DocumentBlock& block);
  /// Document `i` of a claimed block; `scratch` may hold it.
  const Document& document(const DocumentBlock& block, int64_t i, Document& scratch);
  /// Its position, for messages.
  std::string place(const DocumentBlock& block, int64_t i) const;

  int64_t num_claimed() const { return num_claimed_; }

 private:
  bool claim_range(DocumentBlock& block);
  bool read_block(DocumentBlock& block);

  const IndexedDocuments* const indexed_;
  const StreamedDocuments* const streamed_;
  const int64_t block_bytes_;

  std::mutex mutex_;  // guards position_, stream_ and has_ended_
  SourcePosition position_;
  std::unique_ptr<DocumentStream> stream_;
  bool has_ended_ = false;

  std::atomic<int64_t> num_claimed_{0};
  std::atomic<int64_t> documents_read_{0}, bytes_read_{0};  // for the average document size
};

}  // namespace titan::tokenising
