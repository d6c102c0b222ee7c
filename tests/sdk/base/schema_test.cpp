// titan/options.h, one struct at a time: tables, unknown names, order, and errors in the
// declaration itself.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/options.h>

namespace titan {
namespace {

struct Inner {
  double factor = 1;
  int64_t length = 8192;
};
struct Outer {
  int64_t dim = 256;
  Inner scaling{.factor = 4};
};
struct Stranger {
  int64_t count = 0;
};

Schema outer_schema() {
  Schema schema;
  SchemaBuilder(schema)
      .option("dim", &Outer::dim, "Width")
      .at_least(1)
      .table("scaling", &Outer::scaling, "Scaling", [](SchemaBuilder& table) {
        table.option("factor", &Inner::factor, "Factor")
            .at_least(1)
            .option("length", &Inner::length, "Length");
      });
  return schema;
}

std::string error_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Schema, TakesTheDefaultsOfATableFromTheOuterStruct) {
  const Schema schema = outer_schema();
  EXPECT_EQ(to_json(schema.read(schema.prototype.get())),
            R"({"dim":256,"scaling":{"factor":4.0,"length":8192}})");
  EXPECT_EQ(to_json(schema.find("scaling")->default_value), R"({"factor":4.0,"length":8192})");
}

TEST(Schema, SetsSingleMembersOfATable) {
  const Schema schema = outer_schema();
  const auto made =
      std::static_pointer_cast<Outer>(schema.make(parse_json(R"({"scaling":{"length":16}})")));
  EXPECT_EQ(made->scaling.length, 16);
  EXPECT_EQ(made->scaling.factor, 4);
  EXPECT_EQ(made->dim, 256);
}

TEST(Schema, ChecksAMapForATableAndItsMembersWhenAssigned) {
  const Schema schema = outer_schema();
  EXPECT_EQ(schema.find("scaling")->problem(3), "must be a table, got 3");
  EXPECT_EQ(schema.find("scaling")->problem(parse_json(R"({"factor":0})")), std::nullopt);
  EXPECT_EQ(
      error_of([&] { schema.make(parse_json(R"({"scaling":{"factor":0}})")); }, ErrorKind::config),
      "option 'factor' must be >= 1, got 0");
}

TEST(Schema, RefusesAnUnknownName) {
  const Schema schema = outer_schema();
  EXPECT_EQ(schema.find("dims"), nullptr);
  EXPECT_EQ(error_of([&] { schema.make(parse_json(R"({"dims":1})")); }, ErrorKind::config),
            "unknown option 'dims'");
  EXPECT_EQ(error_of([&] { schema.make(parse_json(R"({"scaling":{"f":1}})")); }, ErrorKind::config),
            "unknown option 'f'");
}

TEST(Schema, KeepsTheOrderOfDeclaration) {
  const Schema schema = outer_schema();
  std::vector<std::string> names;
  for (const Option& option : schema.options) names.push_back(option.name);
  EXPECT_EQ(names, (std::vector<std::string>{"dim", "scaling"}));
}

TEST(Schema, MakesNothingWithoutOptions) {
  EXPECT_EQ(Schema().make(Value::map()), nullptr);
}

TEST(Schema, RefusesADeclarationTwice) {
  Schema schema = outer_schema();
  EXPECT_EQ(error_of([&] { SchemaBuilder(schema).option("dim", &Outer::dim, "again"); },
                     ErrorKind::plugin),
            "option 'dim' is declared twice");
}

TEST(Schema, RefusesOptionsOfTwoStructs) {
  Schema schema = outer_schema();
  EXPECT_THAT(error_of([&] { SchemaBuilder(schema).option("count", &Stranger::count, ""); },
                       ErrorKind::plugin),
              ::testing::HasSubstr("options of two different structs"));
}

TEST(Schema, RefusesAConstraintWithoutAnOption) {
  Schema schema;
  EXPECT_EQ(error_of([&] { SchemaBuilder(schema).at_least(1); }, ErrorKind::plugin),
            "a constraint precedes the first option");
}

}  // namespace
}  // namespace titan
