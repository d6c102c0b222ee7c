// Finds added tokens, which are cut out of the text before anything else. Used by the tokenizer
// plugins; the flags have Hugging Face's meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace titan::bpe {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  ///< matches only between non-word characters
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< its normalised content is matched in normalised text
  bool special = false;
};

/// How to treat text that spells a special token.
enum class SpelledTokens { stay_text, become_ids };

/// Receives a text in parts.
class AddedTokenSink {
 public:
  virtual void token(int32_t id) = 0;
  virtual void text(std::string_view part) = 0;  ///< not empty

 protected:
  ~AddedTokenSink() = default;
};

/// Finds the added tokens in a text: from left to right, the longest at each position. Immutable
/// after add(); any thread may split.
class AddedTokenFinder {
 public:
  /// `needle`: the token's content or its normalised form; not empty.
  void add(const AddedToken& token, std::string_view needle);
  void split(std::string_view text, SpelledTokens special, AddedTokenSink& sink) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> children;
    int32_t token = -1;  // index in tokens_
  };
  struct Hit {
    size_t begin;
    size_t end;
    const AddedToken* token;
  };

  /// The longest token at `begin`; end is 0 if there is none.
  Hit longest_at(std::string_view text, size_t begin) const;
  void fit_to_neighbours(std::string_view text, size_t done, Hit& hit) const;
  static bool touches_word(std::string_view text, const Hit& hit);

  bool has_plain_ = false;  // whether there is a token that is not special
  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  bool can_begin_[256] = {};
};

}  // namespace titan::bpe
