// How the tokenizer plugin `tiktoken` encodes text and refuses broken files;
// tests/referee/tiktoken_referee.py compares much more with the original library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <titan/error.h>

#include "plugins/tokenizers/tiktoken/tiktoken_tokenizer.h"

namespace titan::tiktoken {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::HasSubstr;

std::string base64(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kAlphabet[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::string line(std::string_view bytes, int rank) {
  return base64(bytes) + " " + std::to_string(rank) + "\n";
}

/// The 256 bytes in order, then `tokens` from rank 256 on.
std::string ranks(const std::vector<std::string>& tokens) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte)
    text += line(std::string(1, static_cast<char>(byte)), byte);
  for (size_t i = 0; i < tokens.size(); ++i) text += line(tokens[i], 256 + static_cast<int>(i));
  return text;
}

TiktokenTokenizer tokenizer(const std::vector<std::string>& tokens, TiktokenOptions options = {}) {
  return {options, parse_rank_file(ranks(tokens), "ranks"), "ranks"};
}

Ids encode(const Tokenizer& t, std::string_view text) {
  Ids ids;
  t.encode(text, ids);
  return ids;
}

TEST(Tiktoken, MergesTheLowestRankOfTheConcatenationFirst) {
  EXPECT_EQ(encode(tokenizer({"bc", "ab", "abc"}), "abcd"), (Ids{258, 'd'}));
  EXPECT_EQ(encode(tokenizer({"bc", "ab", "cd"}), "abcd"), (Ids{'a', 256, 'd'}));
  EXPECT_EQ(encode(tokenizer({"aa"}), "aaaaa"), (Ids{256, 256, 'a'}));
  // a piece that is a token although no merges lead to it
  EXPECT_EQ(encode(tokenizer({"abcd"}), "abcd abcd"), (Ids{256, ' ', 'a', 'b', 'c', 'd'}));
}

TEST(Tiktoken, NumbersLlama3sSpecialTokens) {
  const TiktokenTokenizer t = tokenizer({});
  EXPECT_EQ(t.vocab_size(), 512);
  EXPECT_EQ(t.special_tokens().bos, 256);
  EXPECT_EQ(t.special_tokens().eos, 257);
  const std::vector<SpecialToken> tokens = expand_special_tokens(llama3_special_tokens(), 128000);
  ASSERT_EQ(tokens.size(), 256u);
  const auto content = [&](int id) { return tokens[static_cast<size_t>(id - 128000)].content; };
  EXPECT_EQ(content(128004), "<|finetune_right_pad_id|>");
  EXPECT_EQ(content(128005), "<|reserved_special_token_2|>");
  EXPECT_EQ(content(128009), "<|eot_id|>");
  EXPECT_EQ(content(128010), "<|python_tag|>");
  EXPECT_EQ(content(128011), "<|reserved_special_token_3|>");
  EXPECT_EQ(tokens.back().content, "<|reserved_special_token_247|>");
  EXPECT_EQ(tokens.back().id, 128255);
}

TEST(Tiktoken, EncodesSpelledSpecialTokensAsTextUnlessAsked) {
  const TiktokenOptions options{
      .special_tokens = {"<|a|>", "<|b|>=300"}, .bos = "<|b|>", .eos = ""};
  EXPECT_EQ(encode(tokenizer({}, options), "<|a|>").size(), 5u);
  TiktokenOptions parsing = options;
  parsing.parse_special_tokens = true;
  const TiktokenTokenizer t = tokenizer({}, parsing);
  EXPECT_EQ(encode(t, "x<|a|><|b|>"), (Ids{'x', 256, 300}));
  Ids ids;
  tokenizer({}, options).encode_with_special_tokens("x<|a|><|b|>", ids);
  EXPECT_EQ(ids, (Ids{'x', 256, 300}));
  EXPECT_EQ(t.decode(Ids{'x', 256, 300}), "x");
  EXPECT_EQ(t.vocab_size(), 301);
  EXPECT_THROW(t.decode(Ids{299}), Error);
  EXPECT_THROW(t.decode(Ids{301}), Error);
  EXPECT_THROW(t.decode(Ids{-1}), Error);
}

TEST(Tiktoken, ReplacesInvalidUtf8) {
  const TiktokenTokenizer t = tokenizer({});
  EXPECT_EQ(t.decode(encode(t, "a\xFF")), "a\uFFFD");
  EXPECT_EQ(t.decode(Ids{0xE2, 0x82}), "\uFFFD");
}

TEST(Tiktoken, EncodesAMegabyteWithoutACut) {
  const TiktokenTokenizer t = tokenizer({"ll", "llll"});
  EXPECT_EQ(encode(t, std::string(1'000'000, 'l')).size(), 250'000u);
}

std::string error_of(const std::string& content, const TiktokenOptions& options = {}) {
  try {
    const TiktokenTokenizer t(options, parse_rank_file(content, "ranks"), "ranks");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(BadTiktoken, NamesTheLine) {
  const std::string good = ranks({"ab"});
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(good + "\r\n\n"), "");
  EXPECT_THAT(error_of("\x0A\x05<unk>"), HasSubstr("ranks:2: a line holds"));
  EXPECT_THAT(error_of("\x0E<unk>"), HasSubstr("choose tokenizer 'sentencepiece'"));
  EXPECT_THAT(error_of(good + "YWI= 400\n"),
              HasSubstr("ranks:258: the token is already in line 257"));
  EXPECT_THAT(error_of(good + "YWJj 256\n"),
              HasSubstr("ranks:258: rank 256 is already in line 257"));
  for (const char* bad :
       {"YWJj", "YWJj x", "YWJj 5x", "YWJj  5", "YWJ 500", "Y=Jj 500", " 500", "YWJj 500 "}) {
    EXPECT_THAT(error_of(good + bad), HasSubstr("ranks:258: a line holds")) << bad;
  }
  EXPECT_THAT(error_of(good + "YWJj 4194304"), HasSubstr("the rank must be in [0, 4194303]"));
  EXPECT_THAT(error_of(good + "YWJj 99999999999999999999"), HasSubstr("the rank must be in"));
  EXPECT_THAT(error_of(good + line(std::string(2000, 'a'), 500)), HasSubstr("the limit is 1024"));
  EXPECT_THAT(error_of(""), HasSubstr("ranks: byte 0 has no rank"));
  EXPECT_THAT(error_of(std::string("Y\0W\0I\0=\0", 8)),
              HasSubstr("ranks:1: this is not a file of tokens in base64; it looks like UTF-16"));
}

TEST(BadTiktoken, NamesTheOption) {
  const std::string good = ranks({});
  EXPECT_THAT(error_of(good, {.pattern = "a("}), HasSubstr("'pattern' of tokenizer 'tiktoken'"));
  EXPECT_THAT(error_of(good, {.bos = "<x>"}), HasSubstr("option 'bos'"));
  const auto special = [&](std::vector<std::string> items) {
    return error_of(good, {.special_tokens = std::move(items), .bos = "", .eos = ""});
  };
  EXPECT_EQ(special({"a{1..2}b", "{x}", "=7=500"}), "");
  EXPECT_THAT(special({"a", "a"}), HasSubstr("'a' is listed twice"));
  EXPECT_THAT(special({"a{5..1}"}), HasSubstr("is descending"));
  EXPECT_THAT(special({"a=97"}), HasSubstr("is the rank of a token in ranks"));
  EXPECT_THAT(special({"a=5000000"}), HasSubstr("the limit is"));
  EXPECT_THAT(special({""}), HasSubstr("a token is empty"));
  EXPECT_THAT(special({"a=300", "b=299", "c"}), HasSubstr("another special token has"));
}

TEST(BadTiktoken, SurvivesMutatedFiles) {
  std::mt19937 random(11);
  const std::string original = ranks({"ab", "cd", "abcd", " the"});
  int num_loaded = 0;
  for (int round = 0; round < 300; ++round) {
    std::string text = original;
    text[random() % text.size()] = "A= \n9z\xFF"[random() % 7];
    if (error_of(text).empty()) ++num_loaded;
  }
  EXPECT_GT(num_loaded, 0);
  EXPECT_LT(num_loaded, 300);
}

}  // namespace
}  // namespace titan::tiktoken
