// Plugin kind `dataset`: where documents come from. No torch.
//
// A data set only says what its documents are. Which document comes when (rows of the global batch,
// epochs, shuffling, blending with other sources), packing and resuming are the core's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

namespace titan {

/// A conversation of a chat, or a prompt and its completion, to be learned by what is answered.
struct Conversation {
  /// As ChatTemplate::render takes it: a map with "messages". Of the messages from `first_target`
  /// on those of the role "assistant" are learned, the others are read only.
  Value chat;
  int64_t first_target = 0;
  /// Without `chat`: text that is read, and text behind it that is learned, no template around them.
  std::string prompt, completion;
};

/// One document: text, tokens when the source is tokenised already, or conversations.
struct Document {
  std::string text;             ///< UTF-8; the core frames it with the tokenizer's BOS and EOS
  std::vector<int32_t> tokens;  ///< used instead of `text` when `is_tokenised`, as they are: what
                                ///< frames a document is in them
  bool is_tokenised = false;
  /// Used instead of `text` when there are any: one, or several that are never parted, each a
  /// sequence of its own in one window (a preferred answer, then the rejected one).
  std::vector<Conversation> conversations = {};

  /// Makes this a document of text. Keeps the memory of the one before.
  void set_text(std::string_view utf8) {
    text = utf8;
    tokens.clear();
    is_tokenised = false;
    conversations.clear();
  }
};

/// What the run lends to a dataset.
struct DatasetContext {
  std::string path;   ///< [training] dataset_path; empty = the dataset's own default
  uint64_t seed = 0;  ///< for data that is drawn; the order of documents is the core's
};

/// Documents that can be read in any order.
class TITAN_API IndexedDocuments {
 public:
  virtual ~IndexedDocuments();

  /// Number of documents.
  virtual int64_t size() const = 0;
  /// [any thread] Document `index` in [0, size()). Errors name file and record.
  virtual void read(int64_t index, Document& document) const = 0;
  /// [any thread] Where document `index` stands, for messages: "web.jsonl:17".
  virtual std::string place(int64_t index) const = 0;
};

/// The documents of one shard, first to last. One thread at a time; several streams of one data set
/// may be read by several threads.
class TITAN_API DocumentStream {
 public:
  virtual ~DocumentStream();

  /// The next document; false at the end of the shard. Errors name file and record; a shard that
  /// ends early is an error, never an end.
  virtual bool next(Document& document) = 0;
  /// As `next`, without looking into the document: it belongs to another row.
  virtual bool skip() = 0;
  /// Before the next document, as a small value: `seek(position())` of another stream of this shard
  /// continues exactly here. seek() throws a data Error for a position that is none of this shard.
  virtual Value position() const = 0;
  virtual void seek(const Value& position) = 0;
  /// [any thread] Where reading stands, for messages: "c4-train.00003-of-01024.json.gz:2310".
  virtual std::string place() const = 0;
};

/// Documents that can only be read from the start of a shard on: compressed files, row groups.
class TITAN_API StreamedDocuments {
 public:
  virtual ~StreamedDocuments();

  /// Number of shards, at least 1: files or parts of files. The documents of the data set are those
  /// of shard 0, then those of shard 1, ...
  virtual int64_t num_shards() const = 0;
  /// [any thread] Opens shard `shard` in [0, num_shards()) at its start. The data set outlives it.
  virtual std::unique_ptr<DocumentStream> open(int64_t shard) const = 0;
};

/// One source, opened once per process. What all its readers share (an index of lines, a memory
/// map) lives here. Derive from IndexedDataset or StreamedDataset unless the files decide.
class TITAN_API Dataset {
 public:
  static constexpr const char* kKind = "dataset";
  using Interface = Dataset;
  using Context = DatasetContext;

  virtual ~Dataset();

  /// Exactly one of the two is not null. Both live as long as the data set.
  virtual const IndexedDocuments* indexed() const = 0;
  virtual const StreamedDocuments* streamed() const = 0;
  /// Changes when the content changes (sizes, counts, names; not where it lies): a resumed run
  /// compares it.
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
