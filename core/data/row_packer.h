// Turns the documents of one row of the global batch into token windows: concatenate and cut. Used
// by the loader.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <titan/dataset.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

namespace titan::core {

/// Each document becomes BOS + tokens + EOS (as far as the tokenizer has them); the stream of all
/// documents is cut into windows that do not overlap. At the end of an epoch the next one follows
/// without a gap.
class RowPacker {
 public:
  /// `window` tokens are cut at a time. `tokenizer` outlives the packer.
  RowPacker(std::unique_ptr<DocumentStream> stream, const Tokenizer& tokenizer, RowShard shard,
            int64_t window);

  /// [loader thread] The next window. Throws a data Error when a whole epoch of this row holds less
  /// than one window.
  std::vector<int32_t> next();

  /// Position and left-over tokens: `restore(state())` continues exactly here.
  Value state() const;
  void restore(const Value& state);

 private:
  void append_document(const Document& document);

  std::unique_ptr<DocumentStream> stream_;
  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  RowShard shard_;
  int64_t window_;
  int64_t epoch_ = 0;
  int64_t tokens_in_epoch_ = 0;
  int64_t documents_in_epoch_ = 0;
  std::vector<int32_t> buffer_;
  size_t consumed_ = 0;  // tokens of buffer_ that were given out already
};

}  // namespace titan::core
