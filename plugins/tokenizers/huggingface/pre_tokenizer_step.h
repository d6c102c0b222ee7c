// Interface of the steps of a pre_tokenizer. Used by PreTokenizer, which runs a chain of them.
#pragma once

#include <string>
#include <string_view>

#include "../common/regex.h"

namespace titan::huggingface {

/// A part of a text; valid only during the call that receives it.
struct Piece {
  std::string_view text;  ///< not empty
  bool starts_input;      ///< it is at the start of the document
};

/// Receives pieces in order.
class PieceSink {
 public:
  virtual void piece(const Piece& piece) = 0;

 protected:
  ~PieceSink() = default;
};

/// Buffers of one step; reused between calls.
struct StepScratch {
  bpe::RegexScratch& regex;
  std::string& text;
};

/// One step. Immutable after construction.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void split(const Piece& piece, StepScratch scratch, PieceSink& sink) const = 0;
};

}  // namespace titan::huggingface
