// Plugin kind `tokenizer`: converts text to token ids and back. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>

namespace titan {

/// Ids that frame documents. Each is absent if the tokenizer has no such token.
struct SpecialTokens {
  std::optional<int32_t> bos;  ///< put before each document
  std::optional<int32_t> eos;  ///< put after each document
  std::optional<int32_t> pad;
};

/// Inputs that the run gives to a tokenizer.
struct TokenizerContext {
  std::string assets_path;  ///< folder named by [model] hf_assets_path
};

/// Thread-safe after construction: several loader threads share one instance.
class TITAN_API Tokenizer {
 public:
  static constexpr const char* kKind = "tokenizer";
  using Interface = Tokenizer;
  using Context = TokenizerContext;

  virtual ~Tokenizer();

  /// [any thread] Appends the ids of `utf8` to `ids`, without BOS and EOS. Text that spells a
  /// special token is encoded as plain text. Invalid UTF-8 bytes are replaced by U+FFFD, as by
  /// Python's errors="replace".
  virtual void encode(std::string_view utf8, std::vector<int32_t>& ids) const = 0;
  /// [any thread] The text of `ids`, without special tokens. Throws a data Error for an id out of
  /// range.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// Number of ids, including special tokens: every id is in [0, vocab_size).
  virtual int64_t vocab_size() const = 0;
  virtual SpecialTokens special_tokens() const = 0;
};

}  // namespace titan
