// Tokens of requests, by the rules of lm-evaluation-harness; tests/end_to_end/evaluate_test.py
// compares with the harness itself.
#include "plugins/commands/evaluate/requests.h"

#include <string>

#include <gmock/gmock.h>

#include "plugins/commands/evaluate/evaluate_fixture.h"

namespace titan::evaluation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

class Requests : public EvaluateFixture {
 protected:
  std::vector<Request> pair(const std::string& context, const std::string& continuation,
                            int64_t max_length = 100, bool adds_bos = true) const {
    const Value line = Value::map({{"context", context}, {"continuation", continuation}});
    return make_requests(tasks({write("a.jsonl", to_json(line))}), tokenizer_,
                         {.adds_bos = adds_bos, .max_length = max_length});
  }
  std::vector<Request> rolling(const std::string& text, int64_t max_length) const {
    return make_requests(tasks({write("a.jsonl", to_json(Value::map({{"text", text}})))}),
                         tokenizer_, {.adds_bos = false, .max_length = max_length});
  }
  static Ids bytes(const std::string& text) { return {text.begin(), text.end()}; }

  ScoredTokenizer tokenizer_;
};

TEST_F(Requests, GiveBlanksAtTheContextsEndToTheContinuation) {
  const Request request = pair("ab \n", "cd").at(0);
  EXPECT_THAT(request.context, ElementsAre(256, 'a', 'b'));
  EXPECT_EQ(request.target, bytes(" \ncd"));
  EXPECT_EQ(pair("ab", " cd", 100, false).at(0).context, bytes("ab"));
}

TEST_F(Requests, PutBosBehindNothing) {
  EXPECT_THAT(pair("", "cd", 100, false).at(0).context, ElementsAre(256));
  EXPECT_EQ(pair("", "cd").at(0).target, bytes("cd"));
  EXPECT_THAT(pair("  ", "c", 100, false).at(0).context, ElementsAre(256));
  const ScoredTokenizer without(false);
  const auto read = tasks({write("a.jsonl", R"({"context": "", "continuation": "c"})")});
  EXPECT_THAT(make_requests(read, without, {.max_length = 9}).at(0).context, ElementsAre(257));
}

TEST_F(Requests, LoseTheirBeginningWhenTooLong) {
  const Request request = pair("abcdef", "gh", 4).at(0);
  EXPECT_EQ(request.context, bytes("def"));
  EXPECT_EQ(request.target, bytes("gh"));
  EXPECT_EQ(pair("abc", "defg", 4).at(0).context, bytes("c"));
}

TEST_F(Requests, CutRollingTextsIntoWindowsWithAllContextThatFits) {
  const auto windows = rolling("abcdefghij", 4);  // the example in the harness's docstring
  ASSERT_EQ(windows.size(), 3);
  EXPECT_THAT(windows[0].context, ElementsAre(256));
  EXPECT_EQ(windows[0].target, bytes("abcd"));
  EXPECT_EQ(windows[1].context, bytes("d"));
  EXPECT_EQ(windows[1].target, bytes("efgh"));
  EXPECT_EQ(windows[2].context, bytes("fgh"));
  EXPECT_EQ(windows[2].target, bytes("ij"));
  EXPECT_EQ(rolling("ab", 4).size(), 1);
  EXPECT_EQ(rolling("abcd", 4).size(), 1);
}

TEST_F(Requests, NameDocumentsThatCannotBeAsked) {
  try {
    pair("ab", "cdefg", 4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("a.jsonl:1: the continuation has 5 tokens, more than the 4"));
  }
}

TEST_F(Requests, AddBosAsTransformersTokenizerDoes) {
  EXPECT_TRUE(adds_bos(folder_));
  write("tokenizer.json", R"({"post_processor": {"type": "ByteLevel"}})");
  EXPECT_FALSE(adds_bos(folder_));
  write("tokenizer.json",
        R"({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"},
      {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}]}})");
  EXPECT_TRUE(adds_bos(folder_));
  write("tokenizer.json", R"({"post_processor": {"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}]}})");
  EXPECT_FALSE(adds_bos(folder_));
  write("tokenizer.json", R"({"post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 0],
      "sep": ["</s>", 2]}})");
  EXPECT_TRUE(adds_bos(folder_));
  write("tokenizer.json", R"({"post_processor": null})");
  EXPECT_FALSE(adds_bos(folder_));
  write("tokenizer_config.json", R"({"add_bos_token": true})");
  EXPECT_FALSE(adds_bos(folder_)) << "tokenizer.json takes precedence";
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_TRUE(adds_bos(folder_));
  write("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_FALSE(adds_bos(folder_));
}

}  // namespace
}  // namespace titan::evaluation
