// Templates of tasks, compared with the output of Jinja2 for the same template and document.
#include "plugins/commands/evaluate/template.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/error.h>

namespace titan::evaluation {
namespace {

std::string applied(const std::string& text, const std::string& json) {
  return TextTemplate(text).apply(parse_json(json));
}

std::string refusal_of(const std::string& text, const std::string& json = "{}") {
  try {
    applied(text, json);
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(TextTemplate, PutsFieldsIntoTheText) {
  EXPECT_EQ(applied("Question: {{question}}\nAnswer:", R"({"question": "Why?"})"),
            "Question: Why?\nAnswer:");
  EXPECT_EQ(applied(" {{ a.b }}{{list[1]}}{{list[0].x}} {",
                    R"({"a": {"b": 1}, "list": [{"x": true}, 0.5]})"),
            " 10.5True {");
  EXPECT_EQ(applied("{a} }} {", "{}"), "{a} }} {");
  EXPECT_EQ(applied("", "{}"), "");
}

TEST(TextTemplate, GivesTheFieldThatItIs) {
  const Value document = parse_json(R"({"a": {"b": ["x", "y"]}})");
  EXPECT_EQ(*TextTemplate("{{a.b}}").only_field(document), Value::list({"x", "y"}));
  EXPECT_EQ(TextTemplate(" {{a.b}}").only_field(document), nullptr);
}

TEST(TextTemplate, NamesAFieldThatIsNotThere) {
  EXPECT_EQ(refusal_of("{{question}}"), "there is no 'question'");
  EXPECT_EQ(refusal_of("{{a[2]}}", R"({"a": ["x"]})"), "there is no 'a[2]'");
  EXPECT_EQ(refusal_of("{{a}}", R"({"a": [1]})"), "'a' is a list, which cannot be part of a text");
  EXPECT_EQ(refusal_of("{{a}}", R"({"a": null})"), "'a' is a null, which cannot be part of a text");
}

TEST(TextTemplate, RefusesTheRestOfJinja) {
  for (const char* text :
       {"{{a|trim}}", "{{a + b}}", "{{}}", "{{a[b]}}", "{{a.}}", "{{'x'}}", "{{a[0}}"})
    EXPECT_THAT(refusal_of(text), ::testing::HasSubstr("only {{field}}")) << text;
  EXPECT_THAT(refusal_of("{% if a %}"), ::testing::HasSubstr("holds '{%'"));
  EXPECT_EQ(refusal_of("{{a"), "holds '{{' without '}}'");
}

}  // namespace
}  // namespace titan::evaluation
