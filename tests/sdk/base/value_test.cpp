// titan/value.h: the JSON-like value, its printing and parsing.
#include <titan/value.h>

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan {
namespace {

ErrorKind kind_of(const std::function<void()>& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::internal;
}

TEST(Value, KnowsWhatItHolds) {
  EXPECT_TRUE(Value().is_null());
  EXPECT_TRUE(Value(true).as_boolean());
  EXPECT_EQ(Value(3).as_integer(), 3);
  EXPECT_EQ(Value(0.5).as_number(), 0.5);
  EXPECT_EQ(Value("word").as_string(), "word");
  EXPECT_EQ(Value::list({1, "a"}).as_list().size(), 2u);
  EXPECT_EQ(Value::map({{"a", 1}}).at("a").as_integer(), 1);
}

TEST(Value, TakesAnIntegerForANumberButNotTheReverse) {
  EXPECT_EQ(Value(3).as_number(), 3.0);
  EXPECT_FALSE(Value(3).is_number());
  std::string message;
  EXPECT_EQ(kind_of([] { Value(3.0).as_integer(); }, &message), ErrorKind::internal);
  EXPECT_EQ(message, "a value of type integer was asked for, but it is number");
}

TEST(Value, KeepsABooleanApartFromAnInteger) {
  EXPECT_FALSE(Value(true) == Value(1));
  EXPECT_FALSE(Value(1) == Value(1.0));
  EXPECT_TRUE(Value::map({{"a", Value::list({1, 2})}}) == Value::map({{"a", Value::list({1, 2})}}));
}

TEST(Value, FindsMembersAndNamesAMissingOne) {
  Value map = Value::map({{"b", 1}, {"a", 2}});
  EXPECT_EQ(map.find("c"), nullptr);
  EXPECT_EQ(Value(3).find("a"), nullptr);
  std::string message;
  EXPECT_EQ(kind_of([&] { std::as_const(map).at("c"); }, &message), ErrorKind::data);
  EXPECT_EQ(message, "member 'c' is missing");
}

TEST(Value, AddsMembersAtTheEndAndMakesMapsOfNothing) {
  Value value;
  value["outer"]["inner"] = 5;
  value["z"] = 1;
  value["a"] = 2;
  value["outer"]["inner"] = 6;
  EXPECT_EQ(to_json(value), R"({"outer":{"inner":6},"z":1,"a":2})");
}

TEST(Value, PrintsNumbersSuchThatTheyReadBackEqual) {
  for (const double number :
       {0.1, 1e-300, 1.0 / 3, 123456789012345680.0, 5e-324, -0.0, 1e22, 8e-4}) {
    const Value back = parse_json(to_json(number));
    ASSERT_TRUE(back.is_number()) << to_json(number);
    EXPECT_EQ(back.as_number(), number);
    EXPECT_EQ(std::signbit(back.as_number()), std::signbit(number));
  }
  EXPECT_EQ(to_json(2.0), "2.0");
  EXPECT_EQ(to_json(int64_t{9007199254740993}), "9007199254740993");
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(parse_json(to_json(lowest)).as_integer(), lowest);
}

TEST(Value, PrintsWhatJsonCannotSayAsNull) {
  EXPECT_EQ(to_json(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(to_json(-std::numeric_limits<double>::infinity()), "null");
}

TEST(Value, EscapesText) {
  EXPECT_EQ(to_json("a\"b\\c\n\t\x01 \u00e9"), "\"a\\\"b\\\\c\\n\\t\\u0001 \u00e9\"");
  EXPECT_EQ(to_json(std::string("x\xffy")), "\"x\ufffdy\"");
  EXPECT_EQ(parse_json(R"("\ud83d\ude00 \u00e9\u0000")").as_string(),
            std::string("\U0001F600 \u00e9\0", 8));
}

TEST(Value, IndentsWhenAsked) {
  EXPECT_EQ(
      to_json(Value::map({{"a", Value::list({1, 2})}, {"b", Value::map()}, {"c", Value::list()}}),
              2),
      "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": []\n}");
}

TEST(Value, KeepsTheOrderOfMembersWhenParsing) {
  EXPECT_EQ(to_json(parse_json(R"( {"z": [true, null, -1, 2.5e3], "a": {"y": "", "b": {}}} )")),
            R"({"z":[true,null,-1,2500.0],"a":{"y":"","b":{}}})");
}

TEST(Value, ParsesIntegersBeyondItsRangeAsNumbers) {
  EXPECT_EQ(parse_json("9223372036854775807").as_integer(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_json("9223372036854775808").as_number(), 9223372036854775808.0);
  EXPECT_EQ(parse_json("-9223372036854775809").as_number(), -9223372036854775808.0);
}

TEST(Value, PlacesTheFirstMistakeOfMalformedJson) {
  std::string message;
  EXPECT_EQ(kind_of([] { parse_json("{\n  \"a\": 1,\n  \"b\": ]\n}"); }, &message),
            ErrorKind::data);
  EXPECT_THAT(message, ::testing::AllOf(::testing::StartsWith("malformed JSON: "),
                                        ::testing::HasSubstr("line 3")));
  for (const char* text : {"", "{", "[1,]", "nul", "{\"a\":1} x", "'a'", "\"a", "01", "\"\xff\""})
    EXPECT_EQ(kind_of([&] { parse_json(text); }), ErrorKind::data) << text;
  EXPECT_EQ(kind_of([] { parse_json({"{}\0{}", 5}); }, &message), ErrorKind::data);
  EXPECT_EQ(message, "malformed JSON: there is a zero byte at byte 2");
  EXPECT_EQ(kind_of([] { parse_json({"{\0}\0", 4}); }, &message), ErrorKind::data);
  EXPECT_EQ(message, "malformed JSON; it looks like UTF-16: save it as UTF-8");
}

TEST(Value, RefusesJsonThatIsNestedTooDeeply) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(200)).is_list());
  for (const size_t depth : {201u, 300u, 1'000'000u}) {
    std::string message;
    EXPECT_EQ(kind_of([&] { parse_json(nested(depth)); }, &message), ErrorKind::data);
    EXPECT_EQ(message, "malformed JSON: nested deeper than 200 levels");
  }
  std::string maps;
  for (int i = 0; i < 100'000; ++i) maps += "{\"a\":";
  EXPECT_EQ(kind_of([&] { parse_json(maps + "1" + std::string(100'000, '}')); }), ErrorKind::data);
}

}  // namespace
}  // namespace titan
