#include "plugins/commands/report/page.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/plugins/error_of.h"

namespace titan::commands {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

TEST(ReportPage, DataCannotEndItsElement) {
  const Value hostile = Value::map({{"</script><script>", "<!-- \xE2\x80\xAE"}});
  const std::string page = to_page(hostile), empty = to_page(Value::map());
  EXPECT_EQ(count(page, "<script"), count(empty, "<script"));
  EXPECT_EQ(count(page, "</script"), count(empty, "</script"));
  EXPECT_EQ(count(page, "<!--"), count(empty, "<!--"));
  EXPECT_EQ(count(page, "\xE2\x80\xAE"), 0u);
  EXPECT_TRUE(titan::testing::holds(page, R"({"\u003c/script>\u003cscript>":"\u003c!-- \u202e"})"));
}

TEST(ReportPage, HasStyleAndScriptInIt) {
  const std::string page = to_page(Value::map());
  EXPECT_EQ(count(page, "/*STYLE*/") + count(page, "/*SCRIPT*/") + count(page, "DATA"), 0u);
  EXPECT_TRUE(titan::testing::holds(page, "class Chart {"));
  EXPECT_TRUE(titan::testing::holds(page, "@media print"));
}

}  // namespace
}  // namespace titan::commands
