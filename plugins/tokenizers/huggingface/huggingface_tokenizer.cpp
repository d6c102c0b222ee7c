#include "huggingface_tokenizer.h"

#include <limits>

#include <titan/error.h>

#include "unicode.h"

namespace titan::huggingface {

struct HuggingfaceTokenizer::Scratch {
  RegexScratch regex;
  NormalizerScratch normalizer;
  Bpe::Scratch bpe;
  std::string repaired;
};

class HuggingfaceTokenizer::ScratchLease {
 public:
  explicit ScratchLease(const HuggingfaceTokenizer& owner) : owner_(owner) {
    {
      const std::lock_guard lock(owner_.mutex_);
      if (!owner_.idle_.empty()) {
        scratch_ = std::move(owner_.idle_.back());
        owner_.idle_.pop_back();
      }
    }
    if (!scratch_) scratch_ = std::make_unique<Scratch>();
  }
  ~ScratchLease() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(scratch_));
  }
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  const HuggingfaceTokenizer& owner_;
  std::unique_ptr<Scratch> scratch_;
};

// Pieces become ids.
struct HuggingfaceTokenizer::IdSink final : PieceSink {
  IdSink(const Bpe& b, Bpe::Scratch& s, std::vector<int32_t>& i) : bpe(b), scratch(s), ids(i) {}
  void piece(std::string_view text) override {
    const std::span<const int32_t> word = bpe.encode(text, scratch);
    if (word.size() == 1) {
      ids.push_back(word[0]);
    } else {
      ids.insert(ids.end(), word.begin(), word.end());
    }
  }
  const Bpe& bpe;
  Bpe::Scratch& scratch;
  std::vector<int32_t>& ids;
};

// Normalised text between added tokens goes to the pre-tokenizer.
struct HuggingfaceTokenizer::NormalizedSink final : AddedTokenSink {
  NormalizedSink(const PreTokenizer& p, RegexScratch& r, IdSink& s)
      : pre_tokenizer(p), regex(r), sink(s) {}
  void token(int32_t id) override { sink.ids.push_back(id); }
  void text(std::string_view part) override { pre_tokenizer.split(part, regex, sink); }
  const PreTokenizer& pre_tokenizer;
  RegexScratch& regex;
  IdSink& sink;
};

// Text between raw added tokens is normalised and searched again.
struct HuggingfaceTokenizer::RawSink final : AddedTokenSink {
  RawSink(const HuggingfaceTokenizer& t, Scratch& s, NormalizedSink& n)
      : tokenizer(t), scratch(s), next(n) {}
  void token(int32_t id) override { next.token(id); }
  void text(std::string_view part) override {
    tokenizer.normalized_added_tokens_.split(
        tokenizer.parts_.normalizer.apply(part, scratch.regex, scratch.normalizer), next);
  }
  const HuggingfaceTokenizer& tokenizer;
  Scratch& scratch;
  NormalizedSink& next;
};

HuggingfaceTokenizer::HuggingfaceTokenizer(const HuggingfaceOptions& options,
                                           TokenizerContext context)
    : parts_(read_tokenizer_folder(context.assets_path)),
      raw_added_tokens_(options.parse_special_tokens),
      normalized_added_tokens_(options.parse_special_tokens) {
  Scratch scratch;
  for (const AddedToken& token : parts_.added_tokens) {
    if (!token.normalized) {
      raw_added_tokens_.add(token, token.content);
      continue;
    }
    const std::string_view needle =
        parts_.normalizer.apply(token.content, scratch.regex, scratch.normalizer);
    TITAN_CHECK(!needle.empty(), data, context.assets_path,
                ": the normalizer leaves nothing of the ", "added token \"", token.content,
                "\"; set its field 'normalized' to false");
    normalized_added_tokens_.add(token, needle);
  }
}

HuggingfaceTokenizer::~HuggingfaceTokenizer() = default;

void HuggingfaceTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  TITAN_CHECK(utf8.size() < std::numeric_limits<uint32_t>::max() / 4, data, "a document of ",
              utf8.size(), " bytes is too long to encode at once; the limit is 1 GiB");
  const ScratchLease lease(*this);
  Scratch& scratch = *lease;
  if (!is_valid_utf8(utf8)) {
    scratch.repaired.clear();
    append_repaired(utf8, scratch.repaired);
    utf8 = scratch.repaired;
  }
  IdSink pieces(parts_.bpe, scratch.bpe, ids);
  NormalizedSink normalized(parts_.pre_tokenizer, scratch.regex, pieces);
  RawSink raw(*this, scratch, normalized);
  raw_added_tokens_.split(utf8, raw);
}

std::string HuggingfaceTokenizer::decode(std::span<const int32_t> ids) const {
  return parts_.decoder.decode(ids);
}

int64_t HuggingfaceTokenizer::vocab_size() const {
  return parts_.decoder.num_ids();
}

}  // namespace titan::huggingface
