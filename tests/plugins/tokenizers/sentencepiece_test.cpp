// The tokenizer plugin `sentencepiece` on models small enough to follow by hand. The referee
// compares it with the reference library on trained ones.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "plugins/tokenizers/sentencepiece/sentencepiece_tokenizer.h"
#include "sentencepiece_model.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::sentencepiece {
namespace {

using Ids = std::vector<int32_t>;

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

Ids encode(const WireText& model, std::string_view text) {
  return encode(SentencepieceTokenizer(model.text(), "small.model"), text);
}

std::string decode(const WireText& model, const Ids& ids) {
  return SentencepieceTokenizer(model.text(), "small.model").decode(ids);
}

TEST(SentencepieceBpe, MergesTheHighestScoreFirstAndTheLeftmostOfEquals) {
  EXPECT_EQ(encode(small_model(), "bab"), (Ids{3, 5, 7}));    // "ab" before "▁a"
  EXPECT_EQ(encode(small_model(), "babc"), (Ids{3, 5, 10}));  // "ab" leftmost, then "abc"
  EXPECT_EQ(encode(small_model(), "bbc ac"), (Ids{3, 5, 8, 9, 6}));
}

TEST(SentencepieceBpe, JoinsUnknownTextToOnePieceOrCutsItToBytes) {
  EXPECT_EQ(encode(small_model(), "xy zb"), (Ids{3, 0, 3, 0, 5}));
  EXPECT_EQ(encode(small_byte_model(), "b\xC3\xA9"), (Ids{3, 5, 11 + 0xC3, 11 + 0xA9}));
}

TEST(SentencepieceBpe, KeepsUserDefinedPiecesWholeAndTakesUnusedOnesApart) {
  WireText model = small_model();
  model.message(1, piece("ca", 0, 4)).message(1, piece("bcb", 0, 5));
  EXPECT_EQ(encode(model, "bcab"), (Ids{3, 5, 11, 5}));
  EXPECT_EQ(encode(model, "bcb"), (Ids{3, 8, 5}));
}

TEST(SentencepieceBpe, TakesAMegabyteOfOneLetter) {
  WireText model = small_model();
  model.message(1, piece("aa", -1)).message(1, piece("aaaa", -1));
  EXPECT_EQ(encode(model, std::string(1 << 20, 'a')).size(), (1 << 18) + 1);
}

TEST(SentencepieceBpe, MergesLongWordsFromTheLeftToo) {
  WireText model = small_model();
  model.message(1, piece("bb", -1));
  Ids expected = {3};
  expected.insert(expected.end(), 30, 11);
  expected.push_back(5);  // the odd one is the last
  EXPECT_EQ(encode(model, std::string(61, 'b')), expected);
}

TEST(SentencepieceUnigram, TakesTheLongerLastPieceOfEqualSums) {
  WireText model = small_model(1);  // like the reference: "▁", "b", "cc" rather than "▁", "bc", "c"
  model.message(1, piece("cc", -1));
  EXPECT_EQ(encode(model, "bcc"), (Ids{3, 5, 11}));
}

TEST(SentencepieceUnigram, TakesThePiecesOfTheHighestSum) {
  EXPECT_EQ(encode(small_model(1), "abc"), (Ids{9, 8}));  // -3; "▁" + "abc" would be -13
  EXPECT_EQ(encode(small_model(1), "babc"), (Ids{3, 5, 10}));
}

TEST(Sentencepiece, PutsABlankInFrontAndTakesItAwayAgain) {
  EXPECT_EQ(encode(small_model(2, true), " b"), (Ids{3, 3, 5}));
  EXPECT_EQ(decode(small_model(2, true), {3, 3, 5}), " b");
  EXPECT_EQ(encode(small_model(2, false), "b"), (Ids{5}));
  EXPECT_EQ(decode(small_model(2, false), {3, 5}), " b");
  EXPECT_EQ(encode(small_model(2, true), ""), Ids{});
}

TEST(Sentencepiece, RemovesBlanksAtTheEndsAndInRuns) {
  EXPECT_EQ(encode(small_model(2, true, true), "  b   c "), (Ids{3, 5, 3, 6}));
  EXPECT_EQ(encode(small_model(2, true, true), "   "), Ids{});
}

TEST(Sentencepiece, ReplacesCharactersByTheCharsmap) {
  WireText model = small_pieces();
  model.message(2, trainer(2));
  model.message(3, normalizer(true, false).bytes(2, charsmap("xy", "ab")));
  EXPECT_EQ(encode(model, "xyc x"), (Ids{3, 10, 3, 0}));
}

TEST(Sentencepiece, TakesTextThatSpellsAControlPieceAsText) {
  EXPECT_EQ(encode(small_model(), "<s>"), (Ids{3, 0}));
  Ids ids;
  const SentencepieceTokenizer tokenizer(small_model().text(), "small.model");
  tokenizer.encode_with_special_tokens("bab<s></s>babc", ids);
  EXPECT_EQ(ids, (Ids{3, 5, 7, 1, 2, 3, 5, 10}));  // text between is encoded separately
  EXPECT_EQ(decode(small_model(), {1, 9, 0, 2}), "a \xE2\x81\x87 ");
}

TEST(Sentencepiece, ReplacesInvalidUtf8ByOneCharacterForEachInvalidPart) {
  const Ids replaced = {3, 11 + 0xEF, 11 + 0xBF, 11 + 0xBD, 5};
  EXPECT_EQ(encode(small_byte_model(),
                   "\xE2\x96"
                   "b"),
            replaced);
  EXPECT_EQ(decode(small_byte_model(), {11 + 0xE2, 11 + 0x96, 5}),
            "\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
}

TEST(Sentencepiece, NamesItsSpecialTokensByTheirPieces) {
  const SentencepieceTokenizer tokenizer(small_model().text(), "small.model");
  EXPECT_EQ(tokenizer.vocab_size(), 11);
  EXPECT_EQ(tokenizer.special_tokens().bos, 1);
  EXPECT_EQ(tokenizer.special_tokens().eos, 2);
  EXPECT_EQ(tokenizer.special_tokens().pad, std::nullopt);
}

TEST(Sentencepiece, RefusesAnIdOutOfRange) {
  for (const int32_t id : {-1, 11}) {
    const Error error = testing::error_of([&] { decode(small_model(), {3, id}); });
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(error.message(), "cannot decode id " + std::to_string(id) +
                                   " at position 1: the ids of small.model are 0 to 10");
  }
}

TEST(Sentencepiece, ReadsItsFileFromTheFolderOrByItsPath) {
  const testing::TestFolder folder;
  const std::string file = folder.write("tokenizer.model", small_model().text());
  for (const std::string& path : {folder.path().string(), file})
    EXPECT_EQ(encode(SentencepieceTokenizer({}, TokenizerContext{path}), "abc"), (Ids{3, 10}));
  const Error error = testing::error_of(
      [&] { SentencepieceTokenizer({.file = "other.model"}, TokenizerContext{folder.path()}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(testing::holds(error.what(), folder.at("other.model")));
}

TEST(Sentencepiece, GivesEveryThreadTheSameIds) {
  const SentencepieceTokenizer tokenizer(small_byte_model().text(), "small.model");
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abcb cab bca"[(i * i + i / 7) % 12];
  const Ids expected = encode(tokenizer, text);
  std::vector<Ids> got(4);
  std::vector<std::thread> threads;
  for (Ids& ids : got)
    threads.emplace_back([&tokenizer, &text, &ids] {
      for (int i = 0; i < 20; ++i) ids = encode(tokenizer, text);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : got) EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace titan::sentencepiece
