#include "core/data/tokenizer_hash.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <titan/error.h>
#include <titan/files/hash.h>

#include "core/data/no_tokenizer.h"

namespace titan::core {
namespace {

/// Text on which tokenizers differ: case, contractions, digits, runs of spaces, line ends, code,
/// scripts, combining marks, signs, emoji with joiners.
constexpr const char* kProbe =
    "The quick brown fox jumps over 13 lazy dogs. DON'T, don't; we'll they've I'd she's O'Neill's\n"
    "1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 0xDEADBEEF 2024-01-31T23:59:59Z\r\n\r\n"
    "  leading,   runs    of     spaces\tand\t\ttabs \n\n\n trailing   \n"
    "def f(x, *, y=None):\n    return {k: v for k, v in x.items() if v != y}  # comment\n"
    "for (int i = 0; i < n; ++i) { a[i] += b[i] * c[i]; } </s> <|endoftext|> [INST] <s>\n"
    "https://example.org/a_b-c?d=e&f=%20#g user@example.org antidisestablishmentarianism\n"
    "Gr\u00fc\u00dfe, \u00e9t\u00e9, e\u0301te\u0301, \u00c5ngstr\u00f6m, na\u00efve, \ufb01ne, "
    "\u01c4, \u2126, \uff21\uff22\uff23 \uff11\uff12, \u00bd, \u2460, x\u00b2\n"
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u039a\u03b1\u03bb\u03b7\u03bc"
    "\u03ad\u03c1\u03b1. \u4f60\u597d\uff0c\u4e16\u754c\u3002 \u3053\u3093\u306b\u3061\u306f "
    "\u30c6\u30b9\u30c8 \ud55c\uad6d\uc5b4 \u0645\u0631\u062d\u0628\u0627 \u0661\u0662\u0663 "
    "\u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a"
    "\u0e14\u0e35\n"
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd \u2192 \u20ac "
    "\u2014 \u201cquoted\u201d \u2026 \u00a0nbsp\u3000ideographic\u200bzero \u0085";

constexpr const char* kNone = "none";

/// A hash over texts and ids.
class Behaviour {
 public:
  explicit Behaviour(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    const SpecialTokens special = tokenizer.special_tokens();
    for (const std::optional<int32_t>& id : {special.bos, special.eos, special.pad})
      add(id ? std::to_string(*id) : "none");
    add(std::to_string(tokenizer.vocab_size()));
    add_ids_of(kProbe);
  }
  void add(const std::string& text) {
    const auto size = static_cast<int64_t>(text.size());
    hasher_.update(&size, sizeof size);
    hasher_.update(text.data(), size);
  }
  void add_ids_of(const std::string& text) {
    ids_.clear();
    tokenizer_.encode(text, ids_);
    hasher_.update(ids_.data(), static_cast<int64_t>(ids_.size() * sizeof(int32_t)));
  }
  void add_unused_id() {
    constexpr int64_t kNoText = -1;  // marks a missing text
    hasher_.update(&kNoText, sizeof kNoText);
  }
  std::string hex() const { return hasher_.hex(); }

 private:
  const Tokenizer& tokenizer_;
  Hasher hasher_;
  std::vector<int32_t> ids_;
};

/// The text of `id`; nothing when no token has it: vocabularies may have holes.
std::optional<std::string> text_of(const Tokenizer& tokenizer, int32_t id) {
  try {
    return tokenizer.decode({&id, 1});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return std::nullopt;
  }
}

}  // namespace

std::string probe_hash(const Tokenizer& tokenizer) {
  if (missing_tokenizer(tokenizer)) return kNone;
  return Behaviour(tokenizer).hex();
}

std::string behaviour_hash(const Tokenizer& tokenizer) {
  if (missing_tokenizer(tokenizer)) return kNone;
  Behaviour behaviour(tokenizer);
  const int64_t vocab_size = tokenizer.vocab_size();
  for (int64_t id = 0; id < vocab_size; ++id) {
    const std::optional<std::string> text = text_of(tokenizer, static_cast<int32_t>(id));
    if (!text) {
      behaviour.add_unused_id();
      continue;
    }
    behaviour.add(*text);
    behaviour.add_ids_of(*text);
    // some tokenizers look up a word that has an id without merging; a longer word tests the merges
    behaviour.add_ids_of(*text + "\u00e5");
  }
  return behaviour.hex();
}

}  // namespace titan::core
