// Plugin kind `dataset`: a source of documents. No torch.
//
// A data set only provides its documents. The core does the rest: assigning documents to rows of
// the global batch, epochs, shuffling, blending with other sources, packing and resuming.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// A chat conversation, or a prompt and its completion. Only the answers contribute to the loss.
struct Conversation {
  /// A map with "messages", as ChatTemplate::render takes it. From message `first_target` on,
  /// messages of role "assistant" contribute to the loss, except those with "weight": 0.
  Value chat;
  int64_t first_target = 0;
  /// Without `chat`: `completion` follows `prompt` and contributes to the loss. No template is
  /// applied.
  std::string prompt, completion;
};

/// One document: text, tokens from a tokenised source, or conversations.
struct Document {
  std::string text;             ///< UTF-8; the core adds the tokenizer's BOS and EOS
  std::vector<int32_t> tokens;  ///< if `is_tokenised`, used unchanged instead of `text`: the source
                                ///< includes BOS and EOS
  bool is_tokenised = false;
  /// If not empty, used instead of `text`. Several conversations always share one row, each
  /// isolated from the others (a preferred answer, then the rejected one).
  std::vector<Conversation> conversations = {};

  /// Turns this into a document of text; reuses its memory.
  void set_text(std::string_view utf8) {
    text = utf8;
    tokens.clear();
    is_tokenised = false;
    conversations.clear();
  }
};

/// Inputs of a data set.
struct DatasetContext {
  std::string path;   ///< [training] dataset_path; empty = the dataset's own default
  uint64_t seed = 0;  ///< for randomly generated data; the core shuffles documents
};

/// Documents that can be read in any order.
class TITAN_API IndexedDocuments {
 public:
  virtual ~IndexedDocuments();

  /// Number of documents.
  virtual int64_t size() const = 0;
  /// [any thread] Document `index` in [0, size()). Errors name file and record.
  virtual void read(int64_t index, Document& document) const = 0;
  /// [any thread] Location of document `index`, for messages: "web.jsonl:17".
  virtual std::string place(int64_t index) const = 0;
};

/// The documents of one shard, first to last. One thread at a time; several threads may read
/// different streams of one data set.
class TITAN_API DocumentStream {
 public:
  virtual ~DocumentStream();

  /// Reads the next document; false at the end of the shard. Errors name file and record; a
  /// truncated shard is an error, not an end.
  virtual bool next(Document& document) = 0;
  /// As `next`, without parsing the document: it belongs to another row.
  virtual bool skip() = 0;
  /// The position before the next document, as a small value. After seek(position()) another stream
  /// of this shard continues exactly here. seek() throws a data Error for a position outside of
  /// this shard.
  virtual Value position() const = 0;
  virtual void seek(const Value& position) = 0;
  /// [any thread] Current location, for messages: "c4-train.00003-of-01024.json.gz:2310".
  virtual std::string place() const = 0;
};

/// Documents that can only be read sequentially from the start of a shard: compressed files, row
/// groups.
class TITAN_API StreamedDocuments {
 public:
  virtual ~StreamedDocuments();

  /// Number of shards, at least 1: files or parts of files. The documents of the data set are those
  /// of shard 0, then those of shard 1, ...
  virtual int64_t num_shards() const = 0;
  /// [any thread] Opens shard `shard` in [0, num_shards()) at its start. The data set outlives the
  /// stream.
  virtual std::unique_ptr<DocumentStream> open(int64_t shard) const = 0;
};

/// One source, opened once per process. It owns the data that its readers share (an index of lines,
/// a memory map). Derive from IndexedDataset or StreamedDataset, or from this class if the files
/// determine which of the two it is.
class TITAN_API Dataset {
 public:
  static constexpr const char* kKind = "dataset";
  using Interface = Dataset;
  using Context = DatasetContext;

  virtual ~Dataset();

  /// Exactly one of the two returns non-null. The result lives as long as the data set.
  virtual const IndexedDocuments* indexed() const = 0;
  virtual const StreamedDocuments* streamed() const = 0;
  /// A text that changes with the content (sizes, counts, names) but not with its location. A
  /// resumed run compares it.
  virtual std::string fingerprint() const = 0;
};

/// A data set whose documents can be read in any order.
class TITAN_API IndexedDataset : public Dataset, public IndexedDocuments {
 public:
  const IndexedDocuments* indexed() const final { return this; }
  const StreamedDocuments* streamed() const final { return nullptr; }
};

/// A data set whose documents are read shard by shard.
class TITAN_API StreamedDataset : public Dataset, public StreamedDocuments {
 public:
  const IndexedDocuments* indexed() const final { return nullptr; }
  const StreamedDocuments* streamed() const final { return this; }
};

}  // namespace titan
