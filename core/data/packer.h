// Packs documents into token windows of equal length. Used by the window feed, one packer per row
// of the global batch.
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
  /// Whether the last token of a document predicts the first one of the next.
  bool labels_cross_documents = true;
  bool once = false;  ///< the data end after one epoch; the last window of a row is padded
};

/// One row of a batch, seq_len + 1 tokens: the inputs are all but the last, the targets all but the
/// first.
struct Window {
  std::vector<int32_t> tokens;  ///< `window` many, padding at the end
  std::vector<int32_t> starts;  ///< starts of the documents in it, ascending; the first is 0
  int32_t num_tokens = 0;       ///< without padding
  int32_t num_targets = 0;      ///< tokens that are predicted
  /// If there are conversations among the documents: for each token whether it is a target. Empty:
  /// every token with a predecessor is one.
  std::vector<uint8_t> is_target = {};
  double num_bytes = 0;  ///< bytes of the targets' text; in proportion for a document that is split
  /// By source, the latest epoch of a document in it; shorter if the last sources have none.
  std::vector<int64_t> epochs = {};
};

/// Sets `epochs` to the element-wise maximum with `others`.
void raise_epochs(std::vector<int64_t>& epochs, const std::vector<int64_t>& others);

/// Whether a piece of a document at `position` of a window begins with a target: not at the start
/// of the window, and after another document only when labels cross documents.
inline bool begins_with_target(const PackingOptions& options, size_t position) {
  return position > 0 && options.labels_cross_documents;
}
/// Appends tokens [begin, begin + count) of `document` to the window.
void append_piece(Window& window, const PackingOptions& options, const TokenizedDocument& document,
                  size_t begin, size_t count);
/// Pads the window, which holds at least one token, to its length; padding is a separate document.
void pad(Window& window, const PackingOptions& options);

/// Thread: one at a time, except for place().
class Packer {
 public:
  virtual ~Packer();
  /// The next window; false when the row has ended (`once`).
  virtual bool next(Window& window) = 0;
  /// The state before the next window. It is small: partly used documents are read again.
  virtual Value state() const = 0;
  virtual void restore(const Value& state) = 0;
  /// [any thread]
  virtual std::string place() const = 0;
};

}  // namespace titan::core
