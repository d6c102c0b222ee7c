// The tokenizer plugin `sentencepiece`: model files of SentencePiece (Llama 2, Mistral, Gemma, T5),
// read without its library.
//
// Encoding: normalise -> cut into pieces (byte pairs or unigrams) -> ids. Decoding: texts of the
// pieces, with bytes joined, U+2581 as spaces, and the leading space removed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <titan/special_token_text.h>
#include <titan/tokenizer.h>

#include "../common/added_tokens.h"
#include "../common/scratch_pool.h"
#include "bpe_encoder.h"
#include "model_file.h"
#include "normalizer.h"
#include "piece_trie.h"
#include "unigram_encoder.h"

namespace titan::sentencepiece {

struct SentencepieceOptions {
  // Name of the model file in the assets folder.
  std::string file = "tokenizer.model";
};

/// See titan/tokenizer.h for the contract. Ids and texts are those of the reference library, except
/// that encode_with_special_tokens turns text that spells a control piece into that piece; the
/// texts between them are encoded separately.
class SentencepieceTokenizer final : public Tokenizer, public SpecialTokenText {
 public:
  /// Reads context.assets_path / options.file, or context.assets_path itself if that is a file.
  SentencepieceTokenizer(const SentencepieceOptions& options, TokenizerContext context);
  /// For a model in memory; `name`: the file, for messages.
  SentencepieceTokenizer(std::string_view model, const std::string& name);
  ~SentencepieceTokenizer() override;

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  void encode_with_special_tokens(std::string_view utf8, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(model_.pieces.size()); }
  SpecialTokens special_tokens() const override;

 private:
  struct Scratch;  // buffers of one encode()

  explicit SentencepieceTokenizer(ModelFile model);

  void encode_valid(std::string_view utf8, Scratch& scratch, std::vector<int32_t>& ids) const;

  ModelFile model_;
  PieceTrie user_defined_;
  PieceTrie no_pieces_;
  Normalizer normalizer_;
  std::optional<Normalizer> denormalizer_;
  std::variant<std::monostate, BpeEncoder, UnigramEncoder> encoder_;
  bpe::AddedTokenFinder special_pieces_;  // control and unknown pieces
  std::vector<int16_t> byte_of_;          // by id: the byte of a byte piece; -1: none
  mutable bpe::ScratchPool<Scratch> scratches_;
};

}  // namespace titan::sentencepiece
