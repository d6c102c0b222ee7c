// The text of tokens as they come: whole characters only, and nothing of a string at which the text
// is to stop. Used by the generator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <titan/tokenizer.h>

#include <titan/export.h>

namespace titan {

class TITAN_API TextStream {
 public:
  /// `tokenizer` outlives this. `stop`: strings that end the text, themselves left out.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop)
      : tokenizer_(tokenizer), stop_(std::move(stop)) {}

  /// What the next token adds that is sure to stay: characters that are not complete and what may
  /// become a stop string are held back. An id that the tokenizer does not have, which a model with
  /// a padded vocabulary may give, has no text, as in transformers.
  std::string add(int32_t id);
  /// What was held back, when no token follows.
  std::string finish();
  /// Whether a stop string has come; nothing more does.
  bool has_stopped() const { return has_stopped_; }
  /// All that was given out.
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
