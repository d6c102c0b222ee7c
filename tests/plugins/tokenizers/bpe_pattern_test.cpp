// The hand-written scanners against PCRE2, with Oniguruma's dialect translated to PCRE2's.
#include <gtest/gtest.h>

#include <random>

#include "plugins/tokenizers/common/char_classes.h"
#include "plugins/tokenizers/common/make_pattern.h"
#include "plugins/tokenizers/common/regex_translate.h"
#include "plugins/tokenizers/common/scanner.h"
#include "plugins/tokenizers/common/unicode.h"

namespace titan::bpe {
namespace {

std::vector<std::string> matches(const Pattern& pattern, std::string_view text) {
  struct Sink final : MatchSink {
    explicit Sink(std::string_view t) : text(t) {}
    void match(size_t begin, size_t end) override {
      found.emplace_back(text.substr(begin, end - begin));
    }
    std::string_view text;
    std::vector<std::string> found;
  } sink(text);
  RegexScratch scratch;
  pattern.find_all(text, scratch, sink);
  return sink.found;
}

std::vector<std::string> regex_matches(const std::string& pattern, std::string_view text) {
  return matches(*make_pcre2_pattern(pattern, Dialect::oniguruma), text);
}

using Strings = std::vector<std::string>;

TEST(Scanner, IsUsedForTheExactPatternOnly) {
  EXPECT_NE(make_scanner(kGpt2Pattern, Dialect::oniguruma), nullptr);
  EXPECT_EQ(make_scanner(std::string(kGpt2Pattern) + " ", Dialect::oniguruma), nullptr);
  EXPECT_EQ(make_scanner(kCl100kPattern, Dialect::oniguruma), nullptr);
}

class ScannerTest : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ScannerTest, FindsWhatPcre2Finds) {
  const std::string pattern(GetParam());
  const std::unique_ptr<Pattern> scanner = make_scanner(pattern, Dialect::rust);
  const std::unique_ptr<Pattern> regex = make_pcre2_pattern(pattern, Dialect::rust);
  const std::string alphabet[] = {
      " ",      " ",      "\n",         "\r",         "\t",         "\v",
      "a",      "Z",      "1",          "7",          "'",          "'",
      "s",      "S",      "t",          "r",          "e",          "v",
      "m",      "l",      "L",          "d",          ".",          "-",
      "/",      "$",      "\u0001",     "\u01c5",     "\u02b0",     "\u3042",
      "\u4e00", "\uac00", "\u0800",     "\u00e9",     "\u00a0",     "\u0085",
      "\u2028", "\u3000", "\u180e",     "\u017f",     "\u0301",     "\u0663",
      "\u2167", "\u6f22", "\U0001F600", "\U00011BF1", "\U000105C0", std::string(1, '\0')};
  std::mt19937 random(3);
  std::uniform_int_distribution<size_t> letter(0, std::size(alphabet) - 1);
  std::uniform_int_distribution<int> length(1, 24);
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (int n = length(random); n > 0; --n) text += alphabet[letter(random)];
    ASSERT_EQ(matches(*scanner, text), matches(*regex, text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(KnownPatterns, ScannerTest,
                         ::testing::Values(kGpt2Pattern, kLlama3Pattern, kQwenPattern,
                                           kO200kPattern, kTekkenPattern, kNumberPattern,
                                           kDeepseekDigitsPattern, kDeepseekCjkPattern,
                                           kDeepseekPattern, kDeepseekV2NewlinePattern,
                                           kDeepseekV2LetterPattern, kDeepseekV2PunctuationPattern,
                                           kDeepseekV2CjkPattern, kCl100kPattern));

TEST(Scanner, ClassifiesEveryCodePointAsPcre2) {
  for (const char* name : {"\\p{L}", "\\p{N}", "\\s"}) {
    const std::unique_ptr<Pattern> regex = make_pcre2_pattern(name, Dialect::oniguruma);
    std::string expected, text, found;
    for (char32_t c = 1; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      append_utf8(c, text);
      const bool is_in = name[1] == 's'   ? is_white_space(c)
                         : name[3] == 'L' ? is_letter(c)
                                          : is_number(c);
      if (is_in) append_utf8(c, expected);
    }
    for (const std::string& match : matches(*regex, text)) found += match;
    EXPECT_TRUE(found == expected) << name;
  }
}

TEST(Scanner, PutsEveryCodePointInItsClass) {
  const std::pair<const char*, uint16_t> classes[] = {{"[\\p{Lu}\\p{Lt}]", kUpper},
                                                      {"\\p{Ll}", kLower},
                                                      {"[\\p{Lm}\\p{Lo}]", kCaseless},
                                                      {"\\p{M}", kMark},
                                                      {"\\p{N}", kNumber},
                                                      {"\\p{P}", kPunctuation},
                                                      {"\\p{S}", kSymbol},
                                                      {"[\\r\\n]", kNewline},
                                                      {"\\s", kWhiteSpace}};
  for (const auto& [pattern, mask] : classes) {
    std::string expected, text, found;
    for (char32_t c = 1; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      append_utf8(c, text);
      if ((class_of(c) & mask) != 0) append_utf8(c, expected);
    }
    for (const std::string& match : regex_matches(pattern, text)) found += match;
    EXPECT_TRUE(found == expected) << pattern;
  }
}

TEST(Regex, ReadsRustsDialect) {
  const auto rust = [](const std::string& pattern, std::string_view text) {
    return matches(*make_pcre2_pattern(pattern, Dialect::rust), text);
  };
  EXPECT_EQ(rust("\\p{N}{1,3}+", "1234567"), (Strings{"123", "456", "7"}));  // possessive
  EXPECT_EQ(rust("x{2}?y", "xxy xy"), (Strings{"xxy"}));
  EXPECT_EQ(rust("b$", "b\nb\n"), Strings{});
  EXPECT_EQ(rust("^a", "a\na"), (Strings{"a"}));
  EXPECT_EQ(rust("\\w+", "a\u00b2\u0301_\u200d"), (Strings{"a", "\u0301_\u200d"}));
  EXPECT_EQ(rust("(?s:.)x", "\nx"), (Strings{"\nx"}));
  EXPECT_EQ(rust("\\s++$|\\s", "a \u180e "), (Strings{" ", " "}));
  EXPECT_THROW(rust("(?m)a", "a"), PatternError);
}

TEST(Regex, ReadsOnigurumasDialect) {
  EXPECT_EQ(regex_matches("\\s", "a\u180e \u0085"), (Strings{" ", "\u0085"}));
  EXPECT_EQ(regex_matches("\\p{N}{1,3}+", "1234567"), (Strings{"1234567"}));  // a repeated group
  EXPECT_EQ(regex_matches("a++b|a", "aab a"), (Strings{"aab", "a"}));         // possessive
  EXPECT_EQ(regex_matches("x{2}?y", "xxy xy"), (Strings{"xxy", "y"}));        // optional
  EXPECT_EQ(regex_matches("x{,2}y", "xxxy"), (Strings{"xxy"}));
  EXPECT_EQ(regex_matches("\\w+", "a\u00b2\u0301_\u2167 \u2079"),
            (Strings{"a\u00b2\u0301_\u2167"}));
  EXPECT_EQ(regex_matches("[a[xy]-]+", "ax-yb"), (Strings{"ax-y"}));
  EXPECT_EQ(regex_matches("\\h+", "12gFf\t"), (Strings{"12", "Ff"}));
  EXPECT_EQ(regex_matches("^a|b$", "a\nab\nb"), (Strings{"a", "a", "b", "b"}));
  EXPECT_EQ(regex_matches("\\bx\\b", "x \u0301x x\u0301 x"), (Strings{"x", "x"}));
  EXPECT_EQ(regex_matches("\\u0041|\\x42|\\x{43}|\\v", "ABC\v\n"), (Strings{"A", "B", "C", "\v"}));
  EXPECT_EQ(regex_matches("(?m:.)x", "\nx"), (Strings{"\nx"}));
}

TEST(Regex, FindsCharactersOfUnicode16) {
  EXPECT_EQ(regex_matches("\\p{L}+", "\u1c89\u1c8a \U000105c0"),
            (Strings{"\u1c89\u1c8a", "\U000105c0"}));
  EXPECT_EQ(regex_matches("[^\\p{L}]", "\u1c89"), Strings{});
  EXPECT_EQ(regex_matches("\\P{L}|\\p{^L}", "\u1c89"), Strings{});
  EXPECT_EQ(regex_matches("\\d", "\U00010D40"), Strings{"\U00010D40"});
}

TEST(Regex, MatchesLongTextThatBacktracks) {
  const std::string text(200'000, 'a');
  EXPECT_EQ(regex_matches("(?:a|b)+$", text), Strings{text});
}

}  // namespace
}  // namespace titan::bpe
