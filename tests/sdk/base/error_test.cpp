// titan/error.h: the exception type and the two checks.
#include <titan/error.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Error thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::internal, ""};
}

TEST(Error, SaysItsKindAndMessage) {
  const Error error =
      thrown_by([] { fail(ErrorKind::io, "cannot read '", "x.bin", "': ", 5, " bytes"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(), "cannot read 'x.bin': 5 bytes");
  EXPECT_STREQ(error.what(), "cannot read 'x.bin': 5 bytes");
}

TEST(Error, GathersContextFromTheInsideOut) {
  const Error error = thrown_by([] {
    try {
      try {
        fail(ErrorKind::data, "bad token 7");
      } catch (Error& e) {
        e.with_context("in document 3");
        throw;
      }
    } catch (Error& e) {
      e.with_context("while reading corpus.jsonl").with_context("in training step 12");
      throw;
    }
  });
  EXPECT_STREQ(error.what(),
               "bad token 7\n  in document 3\n  while reading corpus.jsonl\n  in training step 12");
  EXPECT_EQ(error.message(), "bad token 7");
  EXPECT_EQ(error.kind(), ErrorKind::data);
}

TEST(Error, IsAStandardException) {
  EXPECT_THROW(fail(ErrorKind::config, "x"), std::runtime_error);
}

TEST(Error, NamesEveryKind) {
  EXPECT_STREQ(to_string(ErrorKind::config), "config");
  EXPECT_STREQ(to_string(ErrorKind::plugin), "plugin");
  EXPECT_STREQ(to_string(ErrorKind::data), "data");
  EXPECT_STREQ(to_string(ErrorKind::io), "io");
  EXPECT_STREQ(to_string(ErrorKind::distributed), "distributed");
  EXPECT_STREQ(to_string(ErrorKind::internal), "internal");
}

TEST(Check, PassesWithoutBuildingTheMessage) {
  int built = 0;
  const auto message = [&built] { return ++built, "text"; };
  TITAN_CHECK(true, config, message());
  EXPECT_EQ(built, 0);
  EXPECT_EQ(thrown_by([&] { TITAN_CHECK(false, config, message()); }).message(), "text");
  EXPECT_EQ(built, 1);
}

TEST(Check, IsOneStatement) {
  const auto choose = [](bool check) {
    if (check)
      TITAN_CHECK(false, config, "checked");
    else
      return std::string("else");
    return std::string("after");
  };
  EXPECT_EQ(choose(false), "else");
  EXPECT_EQ(thrown_by([&] { choose(true); }).message(), "checked");
}

TEST(Assert, IsABugWithItsPlace) {
  const Error error = thrown_by([] { TITAN_ASSERT(1 + 1 == 3, "rows ", 4); });
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  EXPECT_THAT(error.message(),
              AllOf(StartsWith("internal error: '1 + 1 == 3' does not hold at "),
                    HasSubstr("error_test.cpp:"), HasSubstr(": rows 4; please report this")));
}

TEST(Assert, NeedsNoMessage) {
  EXPECT_THAT(thrown_by([] { TITAN_ASSERT(false); }).message(), HasSubstr("'false' does not hold"));
}

}  // namespace
}  // namespace titan
