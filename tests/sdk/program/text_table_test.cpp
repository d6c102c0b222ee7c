#include <titan/program/text_table.h>

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(TextTable, HasOneLineForEachRowAndStraightColumns) {
  EXPECT_EQ(text_table({{"name", "type"}, {"你好", "x"}, {"a\nb\u202e", "y"}, {"ü", ""}}, " "),
            " name          type\n"
            " 你好          x\n"
            " a\\x0ab\\u202e  y\n"
            " ü\n");
}

}  // namespace
}  // namespace titan
