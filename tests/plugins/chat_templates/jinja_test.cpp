// The chat template plugin `jinja`, except its template language. end_to_end/chat_template_test.py
// compares that with transformers.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "plugins/chat_templates/jinja/jinja_chat_template.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::jinja {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

Value conversation_of(std::initializer_list<Value> messages) {
  return Value::map({{"messages", Value::list(messages)}});
}

class JinjaChatTemplateTest : public ::testing::Test {
 protected:
  JinjaChatTemplate made(const std::string& text, const JinjaOptions& options = {}) {
    folder_.write("chat_template.jinja", text);
    return JinjaChatTemplate(options, {.assets_path = folder_.path().string()});
  }
  TestFolder folder_;
  const Value hello_ = conversation_of({Value::map({{"role", "user"}, {"content", "Hi"}})});
};

TEST_F(JinjaChatTemplateTest, LeavesOutWhatIsNullInAMessage) {
  const JinjaChatTemplate t = made("{{ messages[0].content is defined }}{{ tools is none }}");
  EXPECT_EQ(
      t.render(conversation_of({Value::map({{"role", "user"}, {"content", Value()}})}), false),
      "FalseTrue");
}

TEST_F(JinjaChatTemplateTest, GivesReasoningUnderEachOfItsNames) {
  const JinjaChatTemplate t = made("{{ messages[0].thinking }}{{ messages[0].reasoning_content }}");
  for (const char* name : {"thinking", "reasoning_content", "reasoning"})
    EXPECT_EQ(t.render(conversation_of({Value::map({{"role", "user"}, {name, "R"}})}), false),
              "RR");
}

TEST_F(JinjaChatTemplateTest, ShowsTheDateThatIsGiven) {
  const JinjaChatTemplate t = made("{{ strftime_now('%d %b %Y') }}", {.date = "2024-02-29"});
  EXPECT_EQ(t.render(hello_, false), "29 Feb 2024");
}

TEST_F(JinjaChatTemplateTest, ChangesNothingOfTheConversation) {
  const JinjaChatTemplate t =
      made("{% set ns = namespace(m=messages) %}{% set ns.m = 1 %}{{ ns.m }}");
  EXPECT_EQ(t.render(hello_, false), "1");
  EXPECT_EQ(t.render(hello_, false), "1");
}

TEST_F(JinjaChatTemplateTest, NamesTheLineWhereAConversationIsRefused) {
  const JinjaChatTemplate t =
      made("a\n{% if true %}\n{{ raise_exception('no\n\x1b[2J') }}{% endif %}");
  const Error error = error_of([&] { t.render(hello_, false); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), "line 3"));
  EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
}

TEST_F(JinjaChatTemplateTest, StopsATemplateThatComesToNoEnd) {
  const JinjaChatTemplate t = made(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = b %}{% endfor %}{% endfor "
      "%}");
  EXPECT_TRUE(holds(error_of([&] { t.render(hello_, false); }).what(), "did not finish within"));
}

TEST_F(JinjaChatTemplateTest, GivesEveryThreadTheSameText) {
  const JinjaChatTemplate t = made(
      "{% macro m(x) %}<{{ x | upper }}>{% endmacro %}{% set ns = namespace(s='') %}"
      "{% for m_ in messages %}{% set ns.s = ns.s ~ m(m_.content) %}{% endfor %}{{ ns.s }}");
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (std::string& text : texts)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) text = t.render(hello_, false);
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "<HI>");
}

}  // namespace
}  // namespace titan::jinja
