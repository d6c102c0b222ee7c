// The tokenizer plugin `huggingface`: tokenizer.json of the byte-level BPE families (GPT-2, Llama
// 3, Qwen 2 and 3).
//
// Encoding: cut out added tokens -> normalise -> cut out normalised added tokens -> pre-tokenise ->
// BPE of each piece, through a cache of words.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <titan/tokenizer.h>

#include "added_tokens.h"
#include "tokenizer_json.h"

namespace titan::huggingface {

struct HuggingfaceOptions {
  // Text that spells a special token becomes its id, the reference library's default. Wrong for
  // corpora: a document must not be able to end itself.
  bool parse_special_tokens = false;
};

/// See titan/tokenizer.h for the contract.
class HuggingfaceTokenizer final : public Tokenizer {
 public:
  HuggingfaceTokenizer(const HuggingfaceOptions& options, TokenizerContext context);
  ~HuggingfaceTokenizer() override;

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  int64_t vocab_size() const override;
  SpecialTokens special_tokens() const override { return parts_.special_tokens; }

 private:
  struct Scratch;      // what one encode() works with
  class ScratchLease;  // borrows one from the pool
  struct NormalizedSink;
  struct RawSink;
  struct IdSink;

  TokenizerParts parts_;
  AddedTokenFinder raw_added_tokens_;
  AddedTokenFinder normalized_added_tokens_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;  // as many as threads encoded at once
};

}  // namespace titan::huggingface
