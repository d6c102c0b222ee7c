// Concatenates documents and splits them into windows, as torchtitan and GPT-2 do. Used by
// make_packer.
#pragma once

#include <memory>
#include <vector>

#include "core/data/packer.h"

namespace titan::core {

/// Treats all documents of the row as one stream of tokens and splits it into windows that do not
/// overlap. The rest of a document starts the next window.
class ConcatenatingPacker final : public Packer {
 public:
  ConcatenatingPacker(std::unique_ptr<RowReader> reader, const PackingOptions& options);

  bool next(Window& window) override;
  Value state() const override;
  void restore(const Value& state) override;
  std::string place() const override { return reader_->place(); }

 private:
  bool read_document();

  std::unique_ptr<RowReader> reader_;
  PackingOptions options_;
  TokenizedDocument document_;  // the current document
  size_t used_ = 0;             // its tokens in earlier windows
  Value before_document_;       // the reader's state
  size_t skip_ = 0;             // after restore: tokens of the next document that were used
};

}  // namespace titan::core
