#include "huggingface_tokenizer.h"

#include <limits>

#include <titan/error.h>

#include "../common/unicode.h"
#include "tokenizer_folder.h"

namespace titan::huggingface {
// Pieces and added tokens become ids.
class HuggingfaceTokenizer::ModelSink : public PieceSink {
 public:
  virtual void token(int32_t id) = 0;
};

namespace {

template <class Base>
struct EngineSink final : Base {
  explicit EngineSink(bpe::IdWriter& w) : writer(w) {}
  void piece(const Piece& piece) override { writer.piece(piece.text); }
  void token(int32_t id) override { writer.token(id); }
  bpe::IdWriter& writer;
};

template <class Base>
struct WordLevelSink final : Base {
  WordLevelSink(const WordLevel& w, std::vector<int32_t>& i) : words(w), ids(i) {}
  void piece(const Piece& piece) override { ids.push_back(words.encode(piece.text)); }
  void token(int32_t id) override { ids.push_back(id); }
  const WordLevel& words;
  std::vector<int32_t>& ids;
};

}  // namespace

// Normalised text between added tokens goes to the pre-tokenizer.
struct HuggingfaceTokenizer::NormalizedSink final : bpe::AddedTokenSink {
  NormalizedSink(const PreTokenizer& p, PreTokenizerScratch& s, ModelSink& m)
      : pre_tokenizer(p), scratch(s), model(m) {}
  void token(int32_t id) override { model.token(id); }
  void text(std::string_view part) override {
    pre_tokenizer.split({part, starts_input && part.data() == begin}, scratch, model);
  }
  const PreTokenizer& pre_tokenizer;
  PreTokenizerScratch& scratch;
  ModelSink& model;
  const char* begin = nullptr;  // of the normalised text
  bool starts_input = false;
};

// Text between raw added tokens is normalised and searched again.
struct HuggingfaceTokenizer::RawSink final : bpe::AddedTokenSink {
  RawSink(const HuggingfaceTokenizer& t, bpe::SpelledTokens special_ones, Scratch& s,
          NormalizedSink& n, const char* b)
      : tokenizer(t), special(special_ones), scratch(s), next(n), begin(b) {}
  void token(int32_t id) override { next.token(id); }
  void text(std::string_view part) override {
    const std::string_view normalized =
        tokenizer.parts_.normalizer.apply(part, scratch.pre_tokenizer.regex, scratch.normalizer);
    next.begin = normalized.data();
    next.starts_input = part.data() == begin;
    tokenizer.normalized_added_tokens_.split(normalized, special, next);
  }
  const HuggingfaceTokenizer& tokenizer;
  const bpe::SpelledTokens special;
  Scratch& scratch;
  NormalizedSink& next;
  const char* begin;  // of the document
};

HuggingfaceTokenizer::HuggingfaceTokenizer(const HuggingfaceOptions& options,
                                           TokenizerContext context)
    : HuggingfaceTokenizer(options, read_tokenizer_folder(context.assets_path)) {}

HuggingfaceTokenizer::HuggingfaceTokenizer(const HuggingfaceOptions& options, TokenizerParts parts)
    : spelled_tokens_(options.parse_special_tokens ? bpe::SpelledTokens::become_ids
                                                   : bpe::SpelledTokens::stay_text),
      parts_(std::move(parts)) {
  bpe::RegexScratch regex;
  NormalizerScratch scratch;
  for (const AddedToken& token : parts_.added_tokens) {
    if (!token.normalized) {
      raw_added_tokens_.add(token, token.content);
      continue;
    }
    const std::string_view needle = parts_.normalizer.apply(token.content, regex, scratch);
    TITAN_CHECK(!needle.empty(), data, parts_.name,
                ": the normalizer leaves nothing of the added token \"", shortened(token.content),
                "\"; set its field 'normalized' to false");
    normalized_added_tokens_.add(token, needle);
  }
}

void HuggingfaceTokenizer::encode(std::string_view utf8, bpe::SpelledTokens special,
                                  std::vector<int32_t>& ids) const {
  const auto lease = scratches_.lend();
  Scratch& scratch = *lease;
  utf8 = bpe::document_text(utf8, scratch.repaired);
  if (const auto* engine = std::get_if<bpe::Engine>(&parts_.model)) {
    bpe::IdWriter writer(*engine, scratch.writer, ids);
    EngineSink<ModelSink> sink(writer);
    encode_valid(utf8, special, scratch, sink);
    writer.finish();
  } else {
    WordLevelSink<ModelSink> sink(std::get<WordLevel>(parts_.model), ids);
    encode_valid(utf8, special, scratch, sink);
  }
}

void HuggingfaceTokenizer::encode_valid(std::string_view utf8, bpe::SpelledTokens special,
                                        Scratch& scratch, ModelSink& model) const {
  NormalizedSink normalized(parts_.pre_tokenizer, scratch.pre_tokenizer, model);
  RawSink raw(*this, special, scratch, normalized, utf8.data());
  raw_added_tokens_.split(utf8, special, raw);
}

std::string HuggingfaceTokenizer::decode(std::span<const int32_t> ids) const {
  return parts_.decoder.decode(ids);
}

}  // namespace titan::huggingface
