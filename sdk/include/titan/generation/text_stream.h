// Decodes tokens to text one by one: whole characters only, and nothing of a stop string. Used by
// the generator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/tokenizer.h>

#include <titan/export.h>

namespace titan {

class TITAN_API TextStream {
 public:
  /// `tokenizer` outlives this. `stop`: strings that end the text, which does not include them.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop)
      : tokenizer_(tokenizer), stop_(std::move(stop)) {}

  /// Adds a token and returns the text that is now certain. Incomplete characters and a possible
  /// start of a stop string are held back. An id outside of the tokenizer's vocabulary, which a
  /// model with a padded vocabulary may choose, has no text, as in transformers.
  std::string add(int32_t id);
  /// [after the last token] The text that was held back.
  std::string finish();
  /// Whether a stop string has occurred; no text follows it.
  bool has_stopped() const { return has_stopped_; }
  /// All text returned so far.
  const std::string& text() const { return text_; }

 private:
  std::string not_given() const;
  std::string give(const std::string& more, bool is_end);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stop_;
  std::vector<int32_t> ids_;
  size_t context_ = 0;  // ids before it are not decoded any more
  size_t decoded_ = 0;  // ids before it are part of what was decoded
  std::string held_, text_;
  bool has_stopped_ = false;
};

}  // namespace titan
