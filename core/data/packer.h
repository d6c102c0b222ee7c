// From documents to token windows of equal length. Used by the window feed, one packer per row of
// the global batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <titan/value.h>

#include "core/config/schema/packing.h"
#include "core/data/row_reader.h"

namespace titan::core {

struct PackingOptions {
  Packing packing = Packing::concatenate;
  int64_t window = 0;  ///< tokens: seq_len + 1
  /// The first token of a document is no target of the last one of the document before.
  bool labels_cross_documents = true;
  bool once = false;  ///< the readers end: the last window of a row is padded
};

/// One row of a batch, seq_len + 1 tokens: what goes in is all but the last, the targets are all
/// but the first.
struct Window {
  std::vector<int32_t> tokens;  ///< `window` many, padding at the end
  std::vector<int32_t> starts;  ///< where the documents in it begin, ascending; the first is 0
  int32_t num_tokens = 0;       ///< without padding
  int32_t num_targets = 0;      ///< tokens that something is to predict
  /// For each token whether it is to be predicted, where conversations are among the documents.
  /// Empty: every token is that something stands before.
  std::vector<uint8_t> is_target = {};
  double num_bytes = 0;  ///< of the text behind the targets; of a document that is cut, its share
  /// By source, the latest epoch that a document in it is of; shorter where the last sources have
  /// none.
  std::vector<int64_t> epochs = {};
};

/// Raises `epochs` to those of `others`.
void raise_epochs(std::vector<int64_t>& epochs, const std::vector<int64_t>& others);

/// Whether a piece of a document that stands at `position` of a window begins with a target: not at
/// the start of the window, and behind another document only when labels cross documents.
inline bool begins_with_target(const PackingOptions& options, size_t position) {
  return position > 0 && options.labels_cross_documents;
}
/// Puts tokens [begin, begin + count) of `document` behind what the window holds.
void append_piece(Window& window, const PackingOptions& options, const TokenizedDocument& document,
                  size_t begin, size_t count);
/// Pads the window, which holds at least one token, to its length; padding is a document of its
/// own.
void pad(Window& window, const PackingOptions& options);

/// One thread at a time, but for place().
class Packer {
 public:
  virtual ~Packer();
  /// The next window; false when the row has ended (`once`).
  virtual bool next(Window& window) = 0;
  /// Before the next window, small: documents that are partly used are read again.
  virtual Value state() const = 0;
  virtual void restore(const Value& state) = 0;
  /// [any thread]
  virtual std::string place() const = 0;
};

}  // namespace titan::core
