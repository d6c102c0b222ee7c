// The text field of a JSON line: the fast scanner against the parser that explains errors, and
// UTF-8.
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include <titan/error.h>

#include "plugins/datasets/common/json_scanner.h"
#include "plugins/datasets/common/text_field.h"
#include "plugins/datasets/common/utf8.h"

namespace titan::datasets {
namespace {

using Json = nlohmann::ordered_json;

class RandomJson {
 public:
  explicit RandomJson(unsigned seed) : random_(seed) {}

  size_t below(size_t bound) { return random_() % bound; }

  std::string text() {
    std::string text;
    for (size_t i = below(40); i > 0; --i) {
      switch (below(8)) {
        case 0:
          append_utf8("\"\\/\b\f\n\r\t\x01\x1f\x7f"[below(11)], text);
          break;
        case 1:
          append_utf8(static_cast<char32_t>(below(0x800)), text);
          break;
        case 2:
          append_utf8(static_cast<char32_t>(0xE000 + below(0x2000)), text);
          break;
        case 3:
          append_utf8(static_cast<char32_t>(0x10000 + below(0x100000)), text);
          break;
        case 4:
          append_utf8(static_cast<char32_t>(0x800 + below(0xD000)), text);
          break;
        default:
          text.append(below(20), static_cast<char>('a' + below(26)));
      }
    }
    return text;
  }
  Json value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<int64_t>(random_()) - (int64_t{1} << 31);
      case 3:
        return std::uniform_real_distribution<double>(-1e9, 1e9)(random_);
      case 4:
        return 1e-7 * static_cast<double>(below(1000));
      case 5:
        return text();
      case 6: {
        Json list = Json::array();
        for (size_t i = below(4); i > 0; --i) list.push_back(value(depth - 1));
        return list;
      }
      default:
        return members(depth - 1);
    }
  }
  Json members(int depth) {
    Json object = Json::object();
    for (size_t i = below(4); i > 0; --i) object[text()] = value(depth);
    return object;
  }
  /// An object whose member "text" is `wanted`, between other members.
  Json object(const std::string& wanted) {
    Json object = members(4);
    object.erase("text");
    object["text"] = wanted;
    object.update(members(4));
    object["text"] = wanted;
    return object;
  }
  void damage(std::string& line) {
    static constexpr std::string_view kBytes =
        "\"\\{}[],: \t\n\r0123456789-+.eEutfnl\x80\xBF\xE0\xED\xF4\xFF";
    for (size_t i = 1 + below(3); i > 0 && !line.empty(); --i) {
      const size_t at = below(line.size());
      switch (below(4)) {
        case 0:
          line.erase(at, 1 + below(4));
          break;
        case 1:
          line.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        case 2:
          line[at] = kBytes[below(kBytes.size())];
          break;
        default:
          line[at] = static_cast<char>(below(256));
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST(TextField, TheScannerReadsWhatAnotherWriterWrote) {
  RandomJson random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string wanted = random.text();
    const bool is_ascii = random.below(2) == 0;
    const int indent = random.below(3) == 0 ? 1 : -1;
    const std::string line = random.object(wanted).dump(indent, ' ', is_ascii);
    std::string text = "left from before";
    ASSERT_TRUE(scan_text_field(line, "text", text)) << line;
    ASSERT_EQ(text, wanted) << line;
  }
}

TEST(TextField, TheScannerIsCertainOnlyOfWhatTheOtherParserReadsAlike) {
  RandomJson random(2);
  int num_certain = 0, num_refused = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string line = random.object(random.text()).dump(-1, ' ', random.below(2) == 0);
    random.damage(line);
    std::string quick, slow;
    const bool is_certain = scan_text_field(line, "text", quick);
    try {
      read_text_field_slowly(line, "text", slow);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::data);
      ASSERT_FALSE(is_certain) << line << "\n" << error.what();
      ++num_refused;
      continue;
    }
    if (!is_certain) continue;
    ASSERT_EQ(quick, slow) << line;
    ++num_certain;
  }
  EXPECT_GT(num_certain, 2000);
  EXPECT_GT(num_refused, 2000);
}

TEST(TextField, UnusualLinesAreReadByTheOtherParser) {
  const std::string deep = std::string(1000, '[') + "1e999" + std::string(1000, ']');
  const std::string line = "{\"x\":" + deep + ",\"text\":\"a\"}";
  std::string text;
  EXPECT_FALSE(scan_text_field(line, "text", text));
  read_text_field(line, "text", text);
  EXPECT_EQ(text, "a");
}

TEST(TextField, NumbersThatNobodyReadsMayBeOfAnySize) {
  const std::string long_number(500, '7');
  for (const std::string& number :
       {std::string("1e400"), std::string("-1E+999999999999999999999"), std::string("1e-400"),
        long_number, "-" + long_number + "." + long_number + "e" + long_number}) {
    for (const std::string& value : {number, "[" + number + ",{\"y\":" + number + "}]"}) {
      const std::string line = "{\"x\":" + value + ",\"text\":\"\\\"1e400\",\"z\":" + value + "}";
      std::string quick, slow;
      EXPECT_TRUE(scan_text_field(line, "text", quick)) << line;
      read_text_field_slowly(line, "text", slow);
      EXPECT_EQ(quick, "\"1e400");
      EXPECT_EQ(slow, quick);
    }
    std::string text;
    try {
      read_text_field("{\"text\":" + number + "}", "text", text);
      ADD_FAILURE() << number;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("field 'text' is a number"), std::string::npos);
    }
  }
  for (const char* bad : {"1e", "1e+", ".5e400", "01e400", "1e400e400", "1.e400", "--1e400"}) {
    const std::string line = std::string("{\"x\":") + bad + ",\"text\":\"a\"}";
    std::string text;
    EXPECT_THROW(read_text_field(line, "text", text), Error) << line;
  }
}

TEST(TextField, FindsTheNameHoweverItIsWritten) {
  std::string text;
  for (const char* line :
       {R"({"te\u0078t":"a"})", R"({"text":"b","text":"a"})", R"( { "text" : "a" } )",
        R"({"text\\":"b","\"text":"c","tex":"d","textt":"e","text":"a"})"}) {
    EXPECT_TRUE(scan_text_field(line, "text", text)) << line;
    EXPECT_EQ(text, "a") << line;
  }
}

TEST(Utf8, IsWhatAnotherLibraryTakesForWellFormed) {
  // every first and second byte, with the third and fourth at the ends of their ranges
  const unsigned char kTails[] = {0x00, 0x22, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (const unsigned char third : kTails) {
        for (const unsigned char fourth : kTails) {
          const unsigned char bytes[] = {static_cast<unsigned char>(first),
                                         static_cast<unsigned char>(second), third, fourth};
          const auto* text = reinterpret_cast<const char*>(bytes);
          for (int size = 1; size <= 4; ++size) {
            utf8proc_int32_t code = 0;
            const auto wanted = utf8proc_iterate(bytes, size, &code);
            ASSERT_EQ(utf8_length(text, text + size), wanted > 0 ? static_cast<size_t>(wanted) : 0U)
                << first << " " << second << " " << +third << " " << +fourth << " of " << size;
          }
        }
      }
    }
  }
}

TEST(Utf8, SaysWhereItEndsToBeWellFormed) {
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
  EXPECT_EQ(valid_utf8_prefix("plain, longer than a word of eight bytes"), 40U);
  EXPECT_EQ(valid_utf8_prefix("12345678\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"), 17U);
  EXPECT_EQ(valid_utf8_prefix("12345678\xC3\xA4\xE2\x82"), 10U);
  EXPECT_EQ(valid_utf8_prefix("123456789\xFFxx"), 9U);
}

TEST(Utf8, IllFormedPartsAreReplacedAsTheUnicodeStandardShows) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("a\xF1\x80\x80\xE1\x80\xC2"
                                 "b\x80"
                                 "c\x80\xBF"
                                 "d"),
            "a" + r + r + r + "b" + r + "c" + r + r + "d");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
                                 "A"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x91\x92\x93\xFF"
                                 "A\x80\xBF"
                                 "B"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(replace_invalid_utf8("fine"), "fine");
}

}  // namespace
}  // namespace titan::datasets
