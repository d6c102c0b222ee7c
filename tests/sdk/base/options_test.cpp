// titan/options.h, one option at a time: accepted types, limits, and the message for a value that
// does not fit.
#include <titan/options.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace titan {
namespace {

enum class Shape { linear, cosine };

struct Everything {
  bool flag = true;
  int64_t count = 3;
  double rate = 0.5;
  std::string word = "text";
  std::filesystem::path file = "a/b";
  Bytes size{64};
  Duration pause{1.5};
  Shape shape = Shape::cosine;
  std::vector<int64_t> numbers = {1, 2};
  std::vector<std::string> words;
  std::vector<std::vector<std::string>> parts = {{"a"}, {"b", "c"}};
  std::optional<int64_t> limit;
  std::optional<std::string> name = "n";
  std::optional<std::vector<std::string>> names;
};

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    using E = Everything;
    SchemaBuilder(schema_)
        .option("flag", &E::flag, "A switch")
        .option("count", &E::count, "A count")
        .at_least(1)
        .at_most(10)
        .option("rate", &E::rate, "A rate")
        .greater_than(0)
        .less_than(1)
        .option("word", &E::word, "A word")
        .one_of({"text", "code"})
        .option("file", &E::file, "A path")
        .option("size", &E::size, "A size")
        .at_least(16)
        .option("pause", &E::pause, "A span")
        .at_most(7200)
        .option("shape", &E::shape, "A shape",
                {{"linear", Shape::linear}, {"cosine", Shape::cosine}})
        .option("numbers", &E::numbers, "Several counts")
        .at_least(0)
        .option("words", &E::words, "Several words")
        .one_of({"x", "y"})
        .option("parts", &E::parts, "Lists of words")
        .option("limit", &E::limit, "A limit or none")
        .greater_than(5)
        .option("name", &E::name, "A name or none")
        .option("names", &E::names, "Names or none");
  }

  const Option& option(const std::string& name) const { return *schema_.find(name); }
  /// "" when the value fits.
  std::string problem(const std::string& name, const Value& value) const {
    return option(name).problem(value).value_or("");
  }
  Everything make(const Value& values) const {
    return *std::static_pointer_cast<Everything>(schema_.make(values));
  }

  Schema schema_;
};

TEST_F(OptionsTest, TakeTheTypeFromTheMember) {
  const std::pair<const char*, OptionType> expected[] = {
      {"flag", OptionType::boolean},   {"count", OptionType::integer},
      {"rate", OptionType::number},    {"word", OptionType::string},
      {"file", OptionType::path},      {"size", OptionType::bytes},
      {"pause", OptionType::duration}, {"shape", OptionType::enumeration},
      {"numbers", OptionType::list},   {"limit", OptionType::integer},
      {"name", OptionType::string},    {"names", OptionType::list}};
  for (const auto& [name, type] : expected) EXPECT_EQ(option(name).type, type) << name;
  EXPECT_EQ(option("numbers").element->type, OptionType::integer);
  EXPECT_EQ(option("parts").element->type, OptionType::list);
  EXPECT_EQ(option("parts").element->element->type, OptionType::string);
  EXPECT_TRUE(option("limit").may_be_unset);
  EXPECT_TRUE(option("names").may_be_unset);
  EXPECT_FALSE(option("count").may_be_unset);
}

TEST_F(OptionsTest, TakeTheDefaultFromTheMember) {
  EXPECT_EQ(
      to_json(schema_.read(schema_.prototype.get())),
      R"({"flag":true,"count":3,"rate":0.5,"word":"text","file":"a/b","size":64,"pause":1.5,"shape":"cosine",)"
      R"("numbers":[1,2],"words":[],"parts":[["a"],["b","c"]],"limit":null,"name":"n","names":null})");
  for (const Option& each : schema_.options)
    EXPECT_EQ(problem(each.name, each.default_value), "") << each.name;
}

TEST_F(OptionsTest, AssignEveryType) {
  const Everything made = make(parse_json(
      R"({"flag":false,"count":7,"rate":0.25,"word":"code","file":"/x","size":"2KiB","pause":"250ms","shape":"linear",
          "numbers":[],"words":["y","x"],"parts":[],"limit":6,"name":null,"names":["p"]})"));
  EXPECT_FALSE(made.flag);
  EXPECT_EQ(made.count, 7);
  EXPECT_EQ(made.rate, 0.25);
  EXPECT_EQ(made.word, "code");
  EXPECT_EQ(made.file, "/x");
  EXPECT_EQ(made.size.count, 2048);
  EXPECT_EQ(made.pause.seconds, 0.25);
  EXPECT_EQ(made.shape, Shape::linear);
  EXPECT_TRUE(made.numbers.empty());
  EXPECT_EQ(made.words, (std::vector<std::string>{"y", "x"}));
  EXPECT_TRUE(made.parts.empty());
  EXPECT_EQ(made.limit, 6);
  EXPECT_EQ(made.name, std::nullopt);
  EXPECT_EQ(made.names, std::vector<std::string>{"p"});
}

TEST_F(OptionsTest, LeaveTheDefaultsAlone) {
  make(Value::map({{"count", 9}, {"numbers", Value::list({5})}}));
  EXPECT_EQ(make(Value()).count, 3);
  EXPECT_EQ(make(Value::map()).numbers, (std::vector<int64_t>{1, 2}));
}

TEST_F(OptionsTest, RefuseAnotherType) {
  EXPECT_EQ(problem("flag", 1), "must be a boolean, got 1");
  EXPECT_EQ(problem("flag", "true"), "must be a boolean, got 'true'");
  EXPECT_EQ(problem("count", 3.0), "must be an integer between 1 and 10, got 3.0");
  EXPECT_EQ(problem("count", true), "must be an integer between 1 and 10, got true");
  EXPECT_EQ(problem("rate", "0.5"), "must be a number > 0 and < 1, got '0.5'");
  EXPECT_EQ(problem("word", 3), "must be a word, one of 'text', 'code', got 3");
  EXPECT_EQ(problem("file", Value::list()), "must be a path, got []");
  EXPECT_EQ(problem("numbers", 3), "must be a list of integer >= 0, got 3");
  EXPECT_EQ(problem("name", false), "must be a string, got false");
}

TEST_F(OptionsTest, TakeAnIntegerForANumber) {
  struct Numbers {
    double factor = 1;
  };
  Schema schema;
  SchemaBuilder(schema).option("factor", &Numbers::factor, "");
  EXPECT_EQ(schema.options[0].problem(2), std::nullopt);
  EXPECT_EQ(std::static_pointer_cast<Numbers>(schema.make(Value::map({{"factor", 2}})))->factor,
            2.0);
}

TEST_F(OptionsTest, KeepWithinTheirBounds) {
  EXPECT_EQ(problem("count", 1), "");
  EXPECT_EQ(problem("count", 10), "");
  EXPECT_EQ(problem("count", 0), "must be between 1 and 10, got 0");
  EXPECT_EQ(problem("count", 11), "must be between 1 and 10, got 11");
  EXPECT_EQ(problem("rate", 0), "must be > 0 and < 1, got 0");
  EXPECT_EQ(problem("rate", 1.0), "must be > 0 and < 1, got 1.0");
  EXPECT_EQ(problem("limit", 5), "must be > 5, got 5");
  EXPECT_EQ(problem("limit", 6), "");
}

TEST_F(OptionsTest, RefuseWhatIsNotFinite) {
  EXPECT_EQ(problem("rate", std::numeric_limits<double>::quiet_NaN()), "must be finite, got nan");
  EXPECT_EQ(problem("rate", std::numeric_limits<double>::infinity()), "must be finite, got inf");
  EXPECT_EQ(problem("pause", -std::numeric_limits<double>::infinity()), "must be finite, got -inf");
}

TEST_F(OptionsTest, KnowTheirWords) {
  EXPECT_EQ(problem("shape", "cosine"), "");
  EXPECT_EQ(problem("shape", "Cosine"), "must be one of 'linear', 'cosine', got 'Cosine'");
  EXPECT_EQ(problem("word", "prose"), "must be one of 'text', 'code', got 'prose'");
  schema_.options[3].ignores_case = true;
  EXPECT_EQ(problem("word", "CODE"), "");
}

TEST_F(OptionsTest, CheckEachItemOfAList) {
  EXPECT_EQ(problem("numbers", Value::list({0, 5})), "");
  EXPECT_EQ(problem("numbers", Value::list({0, -1})), "has an item that must be >= 0, got -1");
  EXPECT_EQ(problem("numbers", Value::list({"a"})),
            "has an item that must be an integer >= 0, got 'a'");
  EXPECT_EQ(problem("words", Value::list({"x", "z"})),
            "has an item that must be one of 'x', 'y', got 'z'");
  EXPECT_EQ(problem("parts", Value::list({Value::list({1})})),
            "has an item that has an item that must be a string, got 1");
}

TEST_F(OptionsTest, CanBeUnsetOnlyWhenOptional) {
  EXPECT_EQ(problem("limit", Value()), "");
  EXPECT_EQ(problem("names", Value()), "");
  EXPECT_EQ(problem("count", Value()), "must be an integer between 1 and 10 and cannot be unset");
}

TEST_F(OptionsTest, SayWhatIsAllowed) {
  EXPECT_EQ(option("flag").allowed(), "boolean");
  EXPECT_EQ(option("count").allowed(), "integer between 1 and 10");
  EXPECT_EQ(option("rate").allowed(), "number > 0 and < 1");
  EXPECT_EQ(option("shape").allowed(), "word, one of 'linear', 'cosine'");
  EXPECT_EQ(option("parts").allowed(), "list of list of string");
  EXPECT_EQ(option("size").allowed(), "size (bytes, or with a unit such as '64MiB') >= 16");
}

TEST_F(OptionsTest, ReadSizesWithUnits) {
  const std::pair<const char*, int64_t> sizes[] = {
      {"512", 512},        {"512B", 512},       {"2KB", 2000},           {"2 KiB", 2048},
      {"1.5MiB", 1572864}, {"3GB", 3000000000}, {"1TiB", 1099511627776}, {"64MiB", 67108864}};
  for (const auto& [text, count] : sizes) {
    ASSERT_EQ(problem("size", text), "") << text;
    EXPECT_EQ(make(Value::map({{"size", text}})).size.count, count) << text;
  }
  EXPECT_EQ(make(Value::map({{"size", 4096}})).size.count, 4096);
  EXPECT_EQ(problem("size", 15), "must be >= 16, got 15");
  EXPECT_EQ(problem("size", "8B"), "must be >= 16, got '8B'");
  for (const char* wrong : {"", "MiB", "2 kib", "2MBB", "-1KiB", "1e30", "9000000TiB"})
    EXPECT_NE(problem("size", wrong), "") << wrong;
}

TEST_F(OptionsTest, ReadSpansWithUnits) {
  const std::pair<const char*, double> spans[] = {{"250ms", 0.25}, {"1.5s", 1.5}, {"90", 90},
                                                  {"2 min", 120},  {"2h", 7200},  {"0.01d", 864}};
  for (const auto& [text, seconds] : spans) {
    ASSERT_EQ(problem("pause", text), "") << text;
    EXPECT_DOUBLE_EQ(make(Value::map({{"pause", text}})).pause.seconds, seconds) << text;
  }
  EXPECT_EQ(make(Value::map({{"pause", 3}})).pause.seconds, 3);
  EXPECT_NE(problem("pause", "3h"), "");
  for (const char* wrong : {"", "s", "5 sec", "1m"})
    EXPECT_NE(problem("pause", wrong), "") << wrong;
}

TEST_F(OptionsTest, ReadInACanonicalFormThatIsTakenAgain) {
  const Value given = parse_json(R"({"size":"1GiB","pause":"2min","shape":"linear","limit":7})");
  const Value read = schema_.read(schema_.make(given).get());
  EXPECT_EQ(read.at("size").as_integer(), 1073741824);
  EXPECT_EQ(read.at("pause").as_number(), 120.0);
  EXPECT_TRUE(schema_.read(schema_.make(read).get()) == read);
}

}  // namespace
}  // namespace titan
