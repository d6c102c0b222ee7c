// One step of a pre_tokenizer and what it takes and gives. Used by PreTokenizer, which runs a chain
// of them.
#pragma once

#include <string>
#include <string_view>

#include "../common/regex.h"

namespace titan::huggingface {

/// A part of a text. It is valid only during the call that it is handed to.
struct Piece {
  std::string_view text;  ///< not empty
  bool starts_input;      ///< nothing of the document stands before it
};

/// Receives pieces in order.
class PieceSink {
 public:
  virtual void piece(const Piece& piece) = 0;

 protected:
  ~PieceSink() = default;
};

/// What one step works with; reused from call to call.
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
