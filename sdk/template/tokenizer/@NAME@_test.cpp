// Tests of the tokenizer @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/testing/component.h>
#include <titan/tokenizer.h>

namespace {

using titan::testing::make;

std::vector<int32_t> ids_of(const titan::Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

TEST(@CLASS@, TextSurvivesARoundTrip) {
  const auto tokenizer = make<titan::Tokenizer>("@FULL_NAME@");
  for (const std::string text : {"", "plain text", "Zürich \xF0\x9F\x98\x80\n\t", "\xFF is no UTF-8"}) {
    const std::vector<int32_t> ids = ids_of(*tokenizer, text);
    for (const int32_t id : ids) EXPECT_LT(id, tokenizer->vocab_size());
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST(@CLASS@, ANewTokenizerGivesTheSameIds) {
  const auto before = make<titan::Tokenizer>("@FULL_NAME@"), after = make<titan::Tokenizer>("@FULL_NAME@");
  EXPECT_EQ(ids_of(*before, "a text"), ids_of(*after, "a text"));
}

TEST(@CLASS@, AnIdOutOfRangeIsRefused) {
  const auto tokenizer = make<titan::Tokenizer>("@FULL_NAME@");
  EXPECT_THROW(tokenizer->decode(std::vector<int32_t>{257}), titan::Error);
}

TEST(@CLASS@, AnOptionDecidesWhetherDocumentsEnd) {
  EXPECT_EQ(make<titan::Tokenizer>("@FULL_NAME@")->special_tokens().eos, 256);
  EXPECT_FALSE(make<titan::Tokenizer>("@FULL_NAME@", {{"end_documents", false}})->special_tokens().eos);
}

}  // namespace
