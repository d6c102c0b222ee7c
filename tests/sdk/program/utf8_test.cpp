#include <titan/program/utf8.h>

#include <gtest/gtest.h>

namespace titan {
namespace {

TEST(Utf8, KeepsCharactersAndReplacesOtherBytes) {
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_EQ(as_utf8("a\u00fc\u20ac\U0001f600"), "a\u00fc\u20ac\U0001f600");
  EXPECT_EQ(as_utf8("a\xff"
                    "b\x80"),
            "a?b?");
  EXPECT_EQ(as_utf8("\xe2\x82"), "??") << "cut off";
  EXPECT_EQ(as_utf8("\xc0\xaf"), "??") << "overlong";
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "???") << "half of a surrogate pair";
  EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), "????") << "above U+10FFFF";
}

}  // namespace
}  // namespace titan
