// The messages dataset: formats of conversations, and malformed lines.
#include "plugins/datasets/messages/messages_dataset.h"

#include <gtest/gtest.h>

#include "tests/plugins/datasets/files_fixture.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::datasets {
namespace {

using titan::testing::error_of;
using titan::testing::gzip_member;
using titan::testing::holds;
using titan::testing::TestFolder;

Document read_form(const std::string& line, const MessagesOptions& options = {}) {
  Document document;
  read_line(line, options, document);
  return document;
}

/// The error of reading the line.
std::string wrong_line(const std::string& line, const MessagesOptions& options = {}) {
  return error_of([&] { read_form(line, options); }).message();
}

const std::string kTurns = R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
                           R"({"role":"user","content":"c"},{"role":"assistant","content":"d"}])";

TEST(MessagesDataset, AChatIsHandedOnWithWhatItsTemplateKnows) {
  const Document document =
      read_form(R"({"id":7,"messages":)" + kTurns +
                R"(,"tools":[{"name":"f"}],"chat_template_kwargs":{"enable_thinking":false}})");
  ASSERT_EQ(document.conversations.size(), 1u);
  const Conversation& conversation = document.conversations[0];
  EXPECT_EQ(to_json(conversation.chat),
            R"({"messages":)" + kTurns + R"(,"tools":[{"name":"f"}],"enable_thinking":false})");
  EXPECT_EQ(conversation.first_target, 0);
}

TEST(MessagesDataset, ToolsMayBeJsonInAText) {
  const Document document =
      read_form(R"({"messages":)" + kTurns + R"(,"tools":"[{\"name\": \"f\"}]"})");
  EXPECT_EQ(to_json(*document.conversations[0].chat.find("tools")), R"([{"name":"f"}])");
}

TEST(MessagesDataset, TheLastAnswerAloneIsLearnedWhenAsked) {
  EXPECT_EQ(read_form(R"({"messages":)" + kTurns + "}", {.learn = Learn::last})
                .conversations[0]
                .first_target,
            3);
}

TEST(MessagesDataset, ShareGptNamesAreTranslated) {
  const Document document = read_form(R"({"conversations":[{"from":"system","value":"s"},)"
                                      R"({"from":"human","value":"a"},{"from":"gpt","value":"b",)"
                                      R"("weight":0},{"from":"observation","value":"o"},)"
                                      R"({"from":"gpt","value":"c"}]})");
  EXPECT_EQ(to_json(document.conversations[0].chat),
            R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},)"
            R"({"role":"assistant","content":"b","weight":0},{"role":"tool","content":"o"},)"
            R"({"role":"assistant","content":"c"}]})");
  EXPECT_EQ(read_form(R"({"conversations":)" + kTurns + "}").conversations[0].chat,
            read_form(R"({"messages":)" + kTurns + "}").conversations[0].chat)
      << "only the name of the member is ShareGPT's";
}

TEST(MessagesDataset, PromptsAndCompletionsAreTextsOrMessages) {
  const Document texts = read_form(R"({"prompt":"1+1=","completion":"2"})");
  EXPECT_TRUE(texts.conversations[0].chat.is_null());
  EXPECT_EQ(texts.conversations[0].prompt, "1+1=");
  EXPECT_EQ(texts.conversations[0].completion, "2");
  const Document chats = read_form(R"({"prompt":[{"role":"assistant","content":"z"},)"
                                   R"({"role":"user","content":"a"}],)"
                                   R"("completion":[{"role":"assistant","content":"b"}]})");
  EXPECT_EQ(chats.conversations[0].chat.at("messages").as_list().size(), 3u);
  EXPECT_EQ(chats.conversations[0].first_target, 2)
      << "an answer in the prompt does not count in the loss";
}

TEST(MessagesDataset, PreferencesAreTwoConversationsThePreferredFirst) {
  const Document texts = read_form(R"({"prompt":"q","chosen":"y","rejected":"n"})");
  ASSERT_EQ(texts.conversations.size(), 2u);
  EXPECT_EQ(texts.conversations[0].prompt + "/" + texts.conversations[0].completion, "q/y");
  EXPECT_EQ(texts.conversations[1].prompt + "/" + texts.conversations[1].completion, "q/n");
  const Document chats = read_form(R"({"prompt":[{"role":"user","content":"q"}],)"
                                   R"("chosen":[{"role":"assistant","content":"y"}],)"
                                   R"("rejected":[{"role":"assistant","content":"n"}]})");
  ASSERT_EQ(chats.conversations.size(), 2u);
  for (const Conversation& conversation : chats.conversations) {
    EXPECT_EQ(conversation.first_target, 1);
    EXPECT_EQ(conversation.chat.at("messages").as_list().size(), 2u);
  }
}

TEST(MessagesDataset, WithoutAPromptItIsWhatBothBeginWith) {
  // the values of TRL 0.24's extract_prompt
  struct Case {
    std::string chosen, rejected, prompt;
  };
  for (const Case& one : {Case{"The sky is blue.", "The sky is green.", "The sky is"},
                          Case{"abc", "abd", "ab"}, Case{"ab", "abc", "a"}, Case{"x", "y", ""}}) {
    const Document document =
        read_form(R"({"chosen":")" + one.chosen + R"(","rejected":")" + one.rejected + "\"}");
    EXPECT_EQ(document.conversations[0].prompt, one.prompt);
    EXPECT_EQ(document.conversations[1].prompt, one.prompt);
    EXPECT_EQ(one.prompt + document.conversations[0].completion, one.chosen);
    EXPECT_EQ(one.prompt + document.conversations[1].completion, one.rejected);
  }
  const Document accents = read_form("{\"chosen\":\"a\u00e9\",\"rejected\":\"a\u00e8\"}");
  EXPECT_EQ(accents.conversations[0].prompt, "a") << "characters stay whole";
  const std::string turn = R"([{"role":"user","content":"q"},{"role":"assistant","content":")";
  const std::string chats = R"("chosen":)" + turn + R"(y"}],"rejected":)" + turn + R"(n"}])";
  EXPECT_EQ(read_form("{" + chats + "}").conversations[0].first_target, 1);
  EXPECT_EQ(read_form(R"({"prompt":"q",)" + chats + "}").conversations[1].first_target, 1)
      << "a prompt next to whole chats repeats their first message";
  EXPECT_TRUE(
      holds(wrong_line(R"({"prompt":"p",)" + chats + "}"), "'prompt' is a text, 'chosen' and"));
}

TEST(MessagesDataset, SaysWhatIsWrongWithALine) {
  struct Case {
    std::string line, wanted;
  };
  const Case kCases[] = {
      {R"({"messages":)", "malformed JSON"},
      {R"([1])", "the line is a list, not an object"},
      {R"({"text":"a"})",
       "the line has none of 'messages', 'conversations', 'completion' (with "
       "'prompt') and 'chosen' (with 'rejected'); it has 'text'"},
      {R"({"messages":)" + kTurns + R"(,"chosen":"a"})",
       "the line has both 'messages' and 'chosen'; option 'form' of dataset 'messages' says which "
       "to read: \"messages\" or \"preference\""},
      {R"({"messages":"hi"})", "member 'messages' is a text, not a list of messages"},
      {R"({"messages":[]})", "member 'messages' is an empty list"},
      {R"({"messages":["hi"]})", "message 1 of 'messages' is a text, not an object with 'role'"},
      {R"({"messages":[{"content":"a"}]})",
       "message 1 of 'messages' has no 'role'; it has 'content'"},
      {R"({"messages":[{"role":"user","content":"a"},{"role":3}]})",
       "message 2 of 'messages': 'role' is a number, not a text"},
      {R"({"messages":[{"role":"user","content":"a"}]})",
       "no message has the role 'assistant', so nothing would contribute to the loss"},
      {R"({"conversations":[{"from":"alien","value":"a"}]})",
       "message 1 of 'conversations' is from 'alien'; allowed: human, user, gpt, assistant"},
      {R"({"conversations":[{"from":"human","value":null}]})",
       "message 1 of 'conversations': 'value' is null, not a text"},
      {R"({"completion":"b"})", "member 'prompt' is missing"},
      {R"({"prompt":"a","completion":[]})",
       "'prompt' is a text and 'completion' is a list; both must be texts or both lists"},
      {R"({"prompt":"a","chosen":"b"})", "member 'rejected' is missing"},
      {R"({"prompt":"a","chosen":"b","rejected":"b"})", "'chosen' and 'rejected' are the same"},
      {R"({"prompt":"a","chosen":"b","rejected":["c"]})",
       "'chosen' is a text and 'rejected' is a list; both must be"},
      {R"({"messages":)" + kTurns + R"(,"chat_template_kwargs":{"messages":1}})",
       "member 'chat_template_kwargs' must not hold 'messages'"},
  };
  for (const Case& one : kCases)
    EXPECT_TRUE(holds(wrong_line(one.line), one.wanted)) << wrong_line(one.line);
}

TEST(MessagesDataset, TheFormCanBeChosen) {
  const std::string line = R"({"messages":)" + kTurns + R"(,"chosen":"a","rejected":"b"})";
  EXPECT_EQ(read_form(line, {.form = Form::messages}).conversations.size(), 1u);
  EXPECT_EQ(read_form(line, {.form = Form::preference}).conversations.size(), 2u);
}

TEST(MessagesDataset, IsReadFromFilesLikeJsonLines) {
  TestFolder folder;
  const std::string lines =
      "{\"prompt\":\"a\",\"completion\":\"b\"}\n\n{\"prompt\":\"c\"}\n"
      "{\"prompt\":\"d\",\"completion\":\"e\"}\n";
  const std::string plain = folder.write("a.jsonl", lines);
  const std::string packed = folder.write("b.jsonl.gz", gzip_member(lines));
  for (const std::string& path : {plain, packed}) {
    const MessagesDataset dataset({.skip_bad_lines = true}, {.path = path});
    std::vector<std::string> completions;
    if (const IndexedDocuments* documents = dataset.indexed()) {
      Document document;
      for (int64_t i = 0; i < documents->size(); ++i) {
        documents->read(i, document);
        completions.push_back(document.conversations.at(0).completion);
      }
    } else {
      const auto stream = dataset.streamed()->open(0);
      for (Document document; stream->next(document);)
        completions.push_back(document.conversations.at(0).completion);
    }
    EXPECT_EQ(completions, (std::vector<std::string>{"b", "e"})) << path;
    const MessagesDataset strict({}, {.path = path});
    const Error error = error_of([&] {
      Document document;
      if (strict.indexed()) {
        strict.indexed()->read(1, document);
      } else {
        const auto stream = strict.streamed()->open(0);
        while (stream->next(document)) {
        }
      }
    });
    EXPECT_EQ(error.message(), path +
                                   ":3: the line has none of 'messages', 'conversations', "
                                   "'completion' (with 'prompt') and 'chosen' (with "
                                   "'rejected'); it has 'prompt'");
  }
  EXPECT_NE(MessagesDataset({}, {.path = plain}).fingerprint(),
            MessagesDataset({.learn = Learn::last}, {.path = plain}).fingerprint());
}

}  // namespace
}  // namespace titan::datasets
