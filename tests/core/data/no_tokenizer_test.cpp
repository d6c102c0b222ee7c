// Tokenized data need no tokenizer; text does.
#include "core/data/no_tokenizer.h"

#include <gtest/gtest.h>

#include "core/data/tokenizer_hash.h"
#include "tests/core/data/fake_text.h"

namespace titan::core {
namespace {

class TokenShards final : public StreamedDataset {
 public:
  int64_t num_shards() const override { return 2; }
  std::unique_ptr<DocumentStream> open(int64_t shard) const override {
    return std::make_unique<Shard>(shard);
  }
  std::string fingerprint() const override { return "tokens"; }

 private:
  /// The first is empty.
  class Shard final : public DocumentStream {
   public:
    explicit Shard(int64_t number) : number_(number) {}
    bool next(Document& document) override {
      document.tokens = {1, 2};
      document.is_tokenised = true;
      return number_ == 1;
    }
    bool skip() override { return false; }
    Value position() const override { return {}; }
    void seek(const Value&) override {}
    std::string place() const override { return "here"; }

   private:
    const int64_t number_;
  };
};

std::unique_ptr<Tokenizer> none() {
  return tokenizer_or_none(
      []() -> std::unique_ptr<Tokenizer> { fail(ErrorKind::io, "no tokenizer in 'x'"); });
}

TEST(NoTokenizer, StandsForFilesThatAreNotThereButForNothingElse) {
  EXPECT_NE(missing_tokenizer(*none()), nullptr);
  EXPECT_EQ(none()->special_tokens().bos, std::nullopt);
  const auto real = tokenizer_or_none([] { return std::make_unique<testing::ByteTokenizer>(); });
  EXPECT_EQ(missing_tokenizer(*real), nullptr);
  for (const ErrorKind kind : {ErrorKind::data, ErrorKind::config, ErrorKind::plugin})
    EXPECT_THROW(tokenizer_or_none([&]() -> std::unique_ptr<Tokenizer> { fail(kind, "broken"); }),
                 Error);
}

TEST(NoTokenizer, IsEnoughForTokensAndSaysWhatTextLacks) {
  EXPECT_NO_THROW(require_tokenizer_for(TokenShards(), *none(), "tokens"));
  const testing::TextDataset text({"a text"});
  EXPECT_NO_THROW(require_tokenizer_for(text, testing::ByteTokenizer(), "text"));
  try {
    require_tokenizer_for(text, *none(), "web");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_STREQ(error.what(), "no tokenizer in 'x'\n  the data set 'web' is text and needs it");
  }
  std::vector<int32_t> ids;
  EXPECT_THROW(none()->encode("x", ids), Error);
}

TEST(NoTokenizer, HasAHashOfItsOwn) {
  EXPECT_EQ(probe_hash(*none()), "none");
  EXPECT_EQ(behaviour_hash(*none()), "none");
}

}  // namespace
}  // namespace titan::core
