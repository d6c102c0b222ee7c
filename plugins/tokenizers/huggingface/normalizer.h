// The normalizer of tokenizer.json: null, NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace,
// Sequence. To add one, write a step class and a line in read_step(). Used by the tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../common/regex.h"
#include "json_view.h"

namespace titan::huggingface {

/// Buffers of one thread; reused between calls.
struct NormalizerScratch {
  std::string first;
  std::string second;
};

/// One step. Immutable after construction.
class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  /// False if a quick check shows that apply() would not change `text`.
  virtual bool may_change(std::string_view text) const = 0;
  /// Appends the normalised `text` to the empty `out`.
  virtual void apply(std::string_view text, bpe::RegexScratch& scratch, std::string& out) const = 0;
};

class Normalizer {
 public:
  Normalizer() = default;
  /// `view`: the component, nullopt if it is null. Throws a data Error.
  explicit Normalizer(const std::optional<JsonView>& view);

  bool empty() const { return steps_.empty(); }
  /// `text` or a view of a buffer of `scratch`, valid until the next call.
  std::string_view apply(std::string_view text, bpe::RegexScratch& regex_scratch,
                         NormalizerScratch& scratch) const;

 private:
  void read_step(const JsonView& view);

  std::vector<std::unique_ptr<NormalizerStep>> steps_;
};

}  // namespace titan::huggingface
