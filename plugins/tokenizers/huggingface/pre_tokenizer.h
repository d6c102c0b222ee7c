// The pre_tokenizer of tokenizer.json: cuts text into the pieces that BPE merges within. Sequence,
// Split, Digits, ByteLevel. A further one is a step class and a line in read_component() of the
// source.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json_view.h"
#include "pattern.h"
#include "regex.h"

namespace titan::huggingface {

/// Receives pieces in order; none is empty. A piece is valid only during the call.
class PieceSink {
 public:
  virtual void piece(std::string_view text) = 0;

 protected:
  ~PieceSink() = default;
};

/// One step. Immutable after construction.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void split(std::string_view text, RegexScratch& scratch, PieceSink& sink) const = 0;
};

/// A chain of steps that ends in ByteLevel: the pieces are raw bytes of the text, which the
/// byte-level vocabulary spells in its own alphabet (see byte_level.h).
class PreTokenizer {
 public:
  /// `view`: the component, or nothing when it is null. Throws a data Error, also if there is no
  /// ByteLevel at the end.
  PreTokenizer(const std::optional<JsonView>& view, const JsonView& document);

  /// `text`: valid UTF-8, not empty.
  void split(std::string_view text, RegexScratch& scratch, PieceSink& sink) const;

 private:
  void read_component(const JsonView& view);
  void run(size_t step, std::string_view text, RegexScratch& scratch, PieceSink& sink) const;

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool ends_in_byte_level_ = false;
};

}  // namespace titan::huggingface
