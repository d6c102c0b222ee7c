// The tokenizer plugin `huggingface`: reads tokenizer.json of the BPE families (GPT-2, Llama 2 and
// 3, Mistral, Qwen, DeepSeek, GPT-OSS), or vocab files without one.
//
// Encoding: cut out added tokens -> normalise -> cut out normalised added tokens -> pre-tokenise ->
// the model's ids of each piece, BPE with a cache of words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "../common/added_tokens.h"
#include "../common/id_writer.h"
#include "../common/scratch_pool.h"
#include "tokenizer_json.h"

namespace titan::huggingface {

struct HuggingfaceOptions {
  // Text that spells a special token becomes its id, as is the reference library's default. Wrong
  // for corpora: a document must not be able to end itself.
  bool parse_special_tokens = false;
};

/// See titan/tokenizer.h for the contract.
class HuggingfaceTokenizer final : public Tokenizer, public SpecialTokenText {
 public:
  HuggingfaceTokenizer(const HuggingfaceOptions& options, TokenizerContext context);
  HuggingfaceTokenizer(const HuggingfaceOptions& options, TokenizerParts parts);

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    encode(utf8, spelled_tokens_, ids);
  }
  void encode_with_special_tokens(std::string_view utf8, std::vector<int32_t>& ids) const override {
    encode(utf8, bpe::SpelledTokens::become_ids, ids);
  }
  std::string decode(std::span<const int32_t> ids) const override;
  int64_t vocab_size() const override { return parts_.decoder.num_ids(); }
  SpecialTokens special_tokens() const override { return parts_.special_tokens; }

 private:
  // buffers of one encode()
  struct Scratch {
    NormalizerScratch normalizer;
    PreTokenizerScratch pre_tokenizer;
    bpe::IdWriter::Scratch writer;
    std::string repaired;
  };
  class ModelSink;
  struct NormalizedSink;
  struct RawSink;

  void encode(std::string_view utf8, bpe::SpelledTokens special, std::vector<int32_t>& ids) const;
  void encode_valid(std::string_view utf8, bpe::SpelledTokens special, Scratch& scratch,
                    ModelSink& model) const;

  bpe::SpelledTokens spelled_tokens_;
  TokenizerParts parts_;
  bpe::AddedTokenFinder raw_added_tokens_;
  bpe::AddedTokenFinder normalized_added_tokens_;
  mutable bpe::ScratchPool<Scratch> scratches_;
};

}  // namespace titan::huggingface
