// The pre_tokenizer of tokenizer.json: cuts text into the pieces that the model works within.
// Sequence, Split, Digits, ByteLevel, Metaspace, Whitespace, WhitespaceSplit, Punctuation. A
// further one is a step class (see pre_tokenizer_steps) and a line in read_component() of the
// source.
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

/// A chain of steps. One with ByteLevel gives pieces of raw bytes, which the vocabulary spells in
/// the byte-level alphabet (see byte_level.h); steps behind it read that spelling.
class PreTokenizer {
 public:
  /// `view`: the component, or nothing when it is null. Throws a data Error.
  explicit PreTokenizer(const std::optional<JsonView>& view);

  bool is_byte_level() const { return is_byte_level_; }
  /// `piece`: valid UTF-8.
  void split(const Piece& piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

 private:
  void read_component(const JsonView& view);
  void read_byte_level(const JsonView& view);
  /// A step that changes no text.
  void add_cuts(std::unique_ptr<PreTokenizerStep> step);
  void run(size_t step, const Piece& piece, PreTokenizerScratch& scratch, PieceSink& sink) const;

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool is_byte_level_ = false;
};

}  // namespace titan::huggingface
