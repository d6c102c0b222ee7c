// The pre_tokenizer of tokenizer.json: cuts text into the pieces that the model works within.
// Sequence, Split, Digits, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Punctuation. To add
// one, write a step class (see pre_tokenizer_steps) and a line in read_component(). Used by the
// tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../common/regex.h"
#include "json_view.h"
#include "pre_tokenizer_step.h"

namespace titan::huggingface {

struct PreTokenizerScratch {
  bpe::RegexScratch regex;
  std::vector<std::string> texts;  // one per step
};

/// A chain of steps. With ByteLevel its pieces are raw bytes, which the vocabulary spells in the
/// byte-level alphabet (see byte_level.h); steps after ByteLevel see that spelling.
class PreTokenizer {
 public:
  /// `view`: the component, nullopt if it is null. Throws a data Error.
  explicit PreTokenizer(const std::optional<JsonView>& view);

  bool is_byte_level() const { return is_byte_level_; }
  /// `piece`: valid UTF-8.
  void split(const Piece& piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

 private:
  void read_component(const JsonView& view);
  void read_byte_level(const JsonView& view);
  /// Adds a step that only cuts text.
  void add_cuts(std::unique_ptr<PreTokenizerStep> step);
  void run(size_t step, const Piece& piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool is_byte_level_ = false;
};

}  // namespace titan::huggingface
