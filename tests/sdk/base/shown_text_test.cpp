// Which characters are shown unescaped, compared for every character with utf8proc, the Unicode
// library.
#include <titan/shown_text.h>

#include <utf8proc.h>

#include <gtest/gtest.h>

#include <titan/value.h>

namespace titan {
namespace {

using namespace std::string_literals;

std::string utf8(char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
}

TEST(Printable, EscapesWhatIsNotSeenOfAllCharacters) {
  const std::set<char32_t> fillers = {0x34F,  0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B,
                                      0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0};
  int num_shown = 0;
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    const bool is_selector =
        (code >= 0xFE00 && code <= 0xFE0F) || (code >= 0xE0100 && code <= 0xE01EF);
    const bool is_noncharacter = (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
    const bool is_harmful = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                            category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_ZL ||
                            category == UTF8PROC_CATEGORY_ZP ||
                            (category == UTF8PROC_CATEGORY_ZS && code != ' ') || is_selector ||
                            is_noncharacter || fillers.contains(code);
    // unassigned characters may be shown or escaped
    if (!is_harmful && category == UTF8PROC_CATEGORY_CN) continue;
    const std::string text = utf8(code), shown = printable(text);
    num_shown += shown == text;
    ASSERT_EQ(shown == text, !is_harmful) << "U+" << std::hex << static_cast<uint32_t>(code);
    if (is_harmful) {
      ASSERT_EQ(shown[0], '\\') << shown;
      ASSERT_EQ(shown.find_first_not_of("\\xuU0123456789abcdef"), shown.npos) << shown;
    }
  }
  EXPECT_GT(num_shown, 140'000);
}

TEST(Printable, NamesTheCharacterOrTheByte) {
  EXPECT_EQ(printable("a\0b\x1b[2J\r\n\t\x7f"s), R"(a\x00b\x1b[2J\x0d\x0a\x09\x7f)");
  EXPECT_EQ(printable("\u0085\u009b\u00ad\u200b\u202e\u2028\ufeff\U000e0041"),
            R"(\u0085\u009b\u00ad\u200b\u202e\u2028\ufeff\U000e0041)");
  EXPECT_EQ(printable("Grüße, 你好, مرحبا, שלום, नमस्ते, ¥½→≠"),
            "Grüße, 你好, مرحبا, שלום, नमस्ते, ¥½→≠");
  EXPECT_EQ(printable(R"(C:\new \x1b 'a' "b")"), R"(C:\new \x1b 'a' "b")");
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\xff\x80z"), R"(a\xff\x80z)");
  EXPECT_EQ(printable("\xc3"), R"(\xc3)") << "cut off";
  EXPECT_EQ(printable("\xe4\xbd(\xf0\x9f\x98"), R"(\xe4\xbd(\xf0\x9f\x98)");
  EXPECT_EQ(printable("\xc0\x80\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf"),
            R"(\xc0\x80\xc1\xbf\xe0\x9f\xbf\xf0\x8f\xbf\xbf)")
      << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80\xed\xbf\xbf"), R"(\xed\xa0\x80\xed\xbf\xbf)") << "surrogates";
  EXPECT_EQ(printable("\xf4\x90\x80\x80\xf5\xf8"), R"(\xf4\x90\x80\x80\xf5\xf8)") << "too large";
}

TEST(Printable, LeavesEmojiWhole) {
  for (const char* emoji :
       {"👩‍🚀", "❤️", "🏳️‍🌈", "👍🏽", "👨🏻‍💻", "☎︎"})
    EXPECT_EQ(printable(emoji), emoji);
  EXPECT_EQ(printable("a\u200db"), R"(a\u200db)");
  EXPECT_EQ(printable("a\ufe0f"), R"(a\ufe0f)");
  EXPECT_EQ(printable("👩\u200d"), R"(👩\u200d)") << "nothing is joined";
  EXPECT_EQ(printable("👩\u200d\u202e"), R"(👩\u200d\u202e)");
  EXPECT_EQ(printable("👩\ufe0f\ufe0f\u200d🚀"), "👩\ufe0f\ufe0f\u200d🚀");
}

TEST(Printable, IsCutBetweenCharacters) {
  EXPECT_EQ(printable(std::string(300, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(printable("äöü", 4), "äö...");
  EXPECT_EQ(printable("äöü", 3), "ä...");
  EXPECT_EQ(printable("\x80\x80\x80\x80\x80\x80", 5), R"(\x80\x80\x80\x80\x80...)");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abc", 0), "...");
  EXPECT_EQ(in_quotes("a\nb", 2), R"('a\x0a...')");
}

TEST(Printable, OfAPrintableTextIsTheSame) {
  std::string all;
  for (char32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 61)
    if (code < 0xD800 || code >= 0xE000) all += utf8(code);
  const std::string once = printable_lines(all);
  EXPECT_EQ(printable_lines(once), once);
}

TEST(PrintableLines, KeepTheLayout) {
  EXPECT_EQ(printable_lines("a\tb\n\r\u2028c\n"), "a\tb\n\\x0d\\u2028c\n");
}

TEST(PrintableMessage, LetsNoNameBeginALine) {
  EXPECT_EQ(printable_message("cannot read 'a\nerror: b'\n  in c\n\nd\n"),
            "cannot read 'a\n  error: b'\n  in c\n\n  d\n");
}

TEST(PrintableJson, MeansTheSame) {
  const Value value =
      Value::map({{"\u202e\x1b\x7f\n", "ü\u009b\u200b\ufeff\U000e0041👩‍🚀\\\"\t"},
                  {"b", Value::list({1})}});
  for (const int indent : {-1, 2}) {
    const std::string json = printable_json(to_json(value, indent));
    EXPECT_EQ(json, printable_lines(json)) << "nothing is left to escape";
    EXPECT_EQ(parse_json(json), value);
    EXPECT_NE(json.find("ü\\u009b"), json.npos) << "visible characters stay: " << json;
  }
}

TEST(PrintableCharacters, AreOneForEachCharacterAndBrokenByte) {
  EXPECT_EQ(printable_characters("a\tü\u202e\xff\n"),
            (std::vector<std::string>{"a", "\t", "ü", "\\u202e", "\\xff", "\\x0a"}));
}

TEST(ColumnsOf, AreThoseOfATerminal) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("Grüße"), 5u);
  EXPECT_EQ(columns_of("你好"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u) << "a separate accent";
}

TEST(Utf16Hint, KnowsMarksAndZeroBytes) {
  EXPECT_NE(utf16_hint("\xff\xfe{\0"s), "");
  EXPECT_NE(utf16_hint("\xfe\xff\0{"s), "");
  EXPECT_NE(utf16_hint("{\0\"\0a\0"s), "");
  EXPECT_NE(utf16_hint("\0{\0\"\0a"s), "");
  EXPECT_EQ(utf16_hint(""), "");
  EXPECT_EQ(utf16_hint("\0"s), "");
  EXPECT_EQ(utf16_hint("\0\0\0\0"s), "") << "no text at all";
  EXPECT_EQ(utf16_hint("{\"text\": \"a\0b\"}"s), "") << "one zero byte";
  EXPECT_EQ(utf16_hint("ordinary text"), "");
  EXPECT_EQ(utf16_hint("\xef\xbb\xbf{}"), "");
}

}  // namespace
}  // namespace titan
