// Reads the documents of one row of the global batch as tokens: blends sources by weight, tokenizes
// text and adds BOS and EOS. Used by the packers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

#include <titan/framing.h>
#include "core/config/schema/packing.h"
#include "core/data/conversation_tokens.h"
#include "core/data/order/source_reader.h"
#include "core/data/skipped_documents.h"
#include "core/data/tokenized_document.h"

namespace titan::core {

/// How documents of conversations are read.
struct ConversationOptions {
  const ChatTemplate* chat_template = nullptr;  ///< outlives the reader; null: the job has none
  /// Tokens that fit a sequence. 0: conversations are refused, because they would be split or
  /// attend to each other.
  int64_t max_tokens = 0;
  TooLong too_long = TooLong::error;
  std::shared_ptr<SkippedDocuments> skipped =
      nullptr;  ///< shared by a run's readers; null: not shared
};

/// One source of a row.
struct BlendedReader {
  std::string name;
  double weight = 1;
  std::unique_ptr<SourceReader> reader;
};

/// Thread: one at a time, except for place().
class RowReader {
 public:
  /// Ids are in [0, vocab_size); `tokenizer` outlives the reader. Weights are normalised.
  RowReader(std::vector<BlendedReader> sources, const Tokenizer& tokenizer, int64_t vocab_size,
            ConversationOptions conversations = {});

  /// The next document of the source that is furthest below its share of the tokens read so far. So
  /// in every prefix the ratio holds up to one document per source. Deterministic. False when every
  /// source has ended. Conversations that are too long or have nothing to learn are left out and
  /// counted. Throws a data Error for a source without tokens, an id >= vocab_size, a conversation
  /// that cannot be rendered or is too long; errors of a source carry its name.
  bool next(TokenizedDocument& document);
  /// Counts a document of `source` as left out; see SkippedDocuments::add.
  void leave_out(size_t source, const std::string& what) const;

  /// The state before the next document: a few integers per source.
  Value state() const;
  void restore(const Value& state);
  /// [any thread] The document that is being read, for messages.
  std::string place() const;

 private:
  struct Source {
    BlendedReader blended;
    int64_t tokens_read = 0;
    bool has_ended = false;
  };

  Source* most_underserved();
  bool read(Source& source, TokenizedDocument& document);
  void tokenise(const Source& source, TokenizedDocument& document);
  void read_conversations(const Source& source, TokenizedDocument& document) const;
  bool fit(const Source& source, TokenizedDocument& document) const;
  void check_ids(const Source& source, const std::vector<int32_t>& tokens) const;

  std::vector<Source> sources_;
  const Tokenizer& tokenizer_;
  Framing framing_;
  int64_t vocab_size_;
  ConversationOptions conversations_;
  ConversationTokens conversation_tokens_;
  int64_t tokens_read_ = 0;  // of all sources
  std::atomic<size_t> reading_{0};
  Document document_;  // a member to reuse its memory
};

}  // namespace titan::core
