// The tokenizer plugin `tiktoken`: byte-pair encoding by ranks, for Llama 3's tokenizer.model and
// OpenAI's .tiktoken files.
//
// Encoding: a pattern cuts the text; a piece that is a token is its id; else its bytes merge, the
// neighbours whose concatenation has the lowest rank first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "../common/added_tokens.h"
#include "../common/engine.h"
#include "../common/id_writer.h"
#include "../common/pattern.h"
#include "../common/scanner.h"
#include "../common/scratch_pool.h"
#include "rank_file.h"
#include "special_tokens.h"

namespace titan::tiktoken {

struct TiktokenOptions {
  std::string file;  // in the assets folder; empty: tokenizer.model, original/tokenizer.model or
                     // the only *.tiktoken
  std::string pattern{bpe::kLlama3Pattern};  // in tiktoken's dialect; text between matches is lost
  std::vector<std::string> special_tokens = llama3_special_tokens();
  std::string bos = "<|begin_of_text|>";  // names of special tokens; empty: none
  std::string eos = "<|end_of_text|>";
  std::string pad;
  bool parse_special_tokens = false;  // text that spells a special token becomes its id
};

/// See titan/tokenizer.h for the contract.
class TiktokenTokenizer final : public Tokenizer, public SpecialTokenText {
 public:
  TiktokenTokenizer(const TiktokenOptions& options, TokenizerContext context);
  /// `name`: the file, for messages.
  TiktokenTokenizer(const TiktokenOptions& options, RankFile ranks, const std::string& name);

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    encode(utf8, spelled_tokens_, ids);
  }
  void encode_with_special_tokens(std::string_view utf8, std::vector<int32_t>& ids) const override {
    encode(utf8, bpe::SpelledTokens::become_ids, ids);
  }
  std::string decode(std::span<const int32_t> ids) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(bytes_.size()); }
  SpecialTokens special_tokens() const override { return special_tokens_; }

 private:
  TiktokenTokenizer(const TiktokenOptions& options, std::pair<RankFile, std::string> ranks);

  struct Scratch {
    bpe::RegexScratch regex;
    bpe::IdWriter::Scratch writer;
    std::string repaired;
  };
  struct PieceSink;
  struct TextSink;

  void encode(std::string_view utf8, bpe::SpelledTokens special, std::vector<int32_t>& ids) const;

  std::unique_ptr<bpe::Pattern> pattern_;
  bpe::Engine engine_;
  bpe::SpelledTokens spelled_tokens_;
  bpe::AddedTokenFinder finder_;
  SpecialTokens special_tokens_;
  std::vector<std::string> bytes_;  // by id; empty for special tokens and unused ids
  std::vector<bool> is_special_;
  mutable bpe::ScratchPool<Scratch> scratches_;
};

}  // namespace titan::tiktoken
