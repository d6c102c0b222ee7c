#include "plugins/commands/evaluate/read_tasks.h"

#include <string>

#include <gmock/gmock.h>

#include "plugins/commands/evaluate/evaluate_fixture.h"

namespace titan::evaluation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadTasks : public EvaluateFixture {};

constexpr const char* kChoices = R"(dataset = "data.jsonl"
doc_to_text = "Q: {{q}}\nA:"
doc_to_choice = "options"
doc_to_target = "right"
)";

TEST_F(ReadTasks, PutsDescriptionAndExamplesInFrontOfEachDocument) {
  write("data.jsonl", R"({"q": "x?", "options": ["yes", "no"], "right": 1})");
  write("shots.jsonl",
        "{\"q\": \"1?\", \"options\": [\"one\", \"two\"], \"right\": 0}\n"
        "{\"q\": \"2?\", \"options\": [\"one\", \"two\"], \"right\": \"two\"}\n"
        "{\"q\": \"3?\", \"options\": [\"one\", \"two\"], \"right\": 0}\n");
  const auto task =
      tasks({write("t.toml", std::string(kChoices) +
                                 "description = \"Hi. \"\n"
                                 "num_fewshot = 2\nfewshot_dataset = \"shots.jsonl\"\n"
                                 "target_delimiter = \"_\"\n")})
          .at(0);
  EXPECT_EQ(task.name(), "t");
  const TaskDocument& document = task.documents.at(0);
  EXPECT_EQ(document.context, "Hi. Q: 1?\nA:_one\n\nQ: 2?\nA:_two\n\nQ: x?\nA:");
  EXPECT_THAT(document.continuations, ElementsAre("_yes", "_no"));
  EXPECT_THAT(document.gold, ElementsAre(1));
}

TEST_F(ReadTasks, KnowsPlainDataByItsFields) {
  const auto all =
      tasks({write("a.jsonl", R"({"query": "q", "choices": ["x", "y"], "gold": [0, 1]})"),
             write("b.jsonl", "\n{\"context\": \"c\", \"continuation\": \" d\"}\r\n"),
             write("c.jsonl", R"({"text": "t"})")});
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0].kind(), TaskKind::multiple_choice);
  EXPECT_THAT(all[0].documents[0].gold, ElementsAre(0, 1));
  EXPECT_EQ(all[1].kind(), TaskKind::loglikelihood);
  EXPECT_EQ(all[1].documents[0].context, "c");
  EXPECT_THAT(all[1].documents[0].continuations, ElementsAre(" d"));
  EXPECT_EQ(all[2].kind(), TaskKind::loglikelihood_rolling);
  EXPECT_THAT(all[2].documents[0].continuations, ElementsAre("t"));
}

TEST_F(ReadTasks, TakesChoicesFromAFieldOrFromTexts) {
  write("data.jsonl", R"({"q": "x?", "c": {"text": ["yes", "no"]}, "a": "A1", "right": "1"})");
  const std::string head = "dataset = \"data.jsonl\"\ndoc_to_text = \"q\"\n";
  for (const auto& [rest, second] :
       {std::pair{"doc_to_choice = \"{{c.text}}\"\ndoc_to_target = \"{{right}}\"", "no"},
        std::pair{"doc_to_choice = [\"is {{a}}\", \"{{a}}\"]\ndoc_to_target = \"a\"", "A1"}}) {
    const auto task = tasks({write("t.toml", head + rest)}).at(0);
    EXPECT_EQ(task.documents.at(0).choices.at(1), second);
    EXPECT_THAT(task.documents.at(0).gold, ElementsAre(1));
  }
}

TEST_F(ReadTasks, TakesOfAFolderWhatNoTaskNames) {
  write("data.jsonl", R"({"q": "x?", "options": ["yes", "no"], "right": 1})");
  write("b.toml", kChoices);
  write("a.jsonl", R"({"text": "t"})");
  const auto all = tasks({folder_});
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].name(), "a");
  EXPECT_EQ(all[1].name(), "b");
}

TEST_F(ReadTasks, TakesTheFirstDocuments) {
  const auto file = write("a.jsonl", "{\"text\": \"1\"}\n{\"text\": \"2\"}\n{\"text\": \"3\"}\n");
  const auto all = read_tasks({file}, 2);
  EXPECT_EQ(all[0].documents.size(), 2);
  EXPECT_EQ(all[0].num_original, 3);
}

TEST_F(ReadTasks, NamesEveryMistakeWithItsPlace) {
  write("data.jsonl",
        "{\"q\": \"x?\", \"options\": [\"yes\", \"no\"], \"right\": 2}\n"
        "{\"q\": \"x?\" \"options\": 1}\n"
        "[1]\n"
        "{\"q\": \"x?\", \"options\": [\"yes\", \"\"], \"right\": 0}\n"
        "{\"q\": \"x?\", \"options\": [\"yes\", \"no\"], \"right\": \"maybe\"}\n"
        "{\"options\": [\"yes\", \"no\"], \"right\": 0}\n"
        "{\"q\": \"x?\", \"options\": \"yes\", \"right\": 0}\n");
  const std::string said =
      refusal({write("t.toml", kChoices), write("wrong.toml", R"(dataset = "data.jsonl"
doc_to_txt = "q"
output_type = "choices"
num_fewshot = -1
)"),
               write("x.jsonl", R"({"body": "t"})"), folder_ / "not_there.jsonl"});
  for (const char* line :
       {"data.jsonl:1: the gold choice 2 is not in 0 to 1",
        "data.jsonl:2:20: malformed JSON: syntax error",
        "data.jsonl:3: expected a JSON object, got a list", "data.jsonl:4: a choice is empty",
        "data.jsonl:5: the gold choice 'maybe' is not one of the 2 choices",
        "data.jsonl:6: there is no 'q'", "data.jsonl:7: 'options' must be a list of strings",
        "wrong.toml:2:1: error: unknown key 'doc_to_txt' of a task", "did you mean 'doc_to_text'?",
        "wrong.toml:3:15: error: output_type must be one of",
        "wrong.toml:4:15: error: num_fewshot must be >= 0", "x.jsonl:1: a line must have \"query\"",
        "not_there.jsonl", "errors; nothing was started. See: titan evaluate --help"})
    EXPECT_THAT(said, HasSubstr(line));
}

TEST_F(ReadTasks, RefusesTextsThatDoNotFitTheKind) {
  write("data.jsonl", R"({"text": "t"})");
  EXPECT_THAT(refusal({write("a.toml", "dataset = \"data.jsonl\"\ndoc_to_target = \"text\"\n")}),
              HasSubstr("a.toml: doc_to_choice is missing"));
  EXPECT_THAT(refusal({write("a.toml",
                             "dataset = \"data.jsonl\"\ndoc_to_target = \"text\"\n"
                             "output_type = \"loglikelihood_rolling\"\nnum_fewshot = 1\n"
                             "fewshot_dataset = \"data.jsonl\"\n")}),
              HasSubstr("scores doc_to_target alone"));
  EXPECT_THAT(
      refusal({write("a.toml", std::string(kChoices) + "num_fewshot = 3\n"
                                                       "fewshot_dataset = \"data.jsonl\"\n")}),
      HasSubstr("num_fewshot = 3, but data.jsonl has 1 documents"));
  EXPECT_THAT(refusal({write("a.toml",
                             "dataset = \"data.jsonl\"\ndoc_to_text = \"{{x|y}}\"\n"
                             "doc_to_target = \"text\"\noutput_type = \"loglikelihood\"")}),
              HasSubstr("a.toml: a text holds '{{x|y}}'"));
}

}  // namespace
}  // namespace titan::evaluation
