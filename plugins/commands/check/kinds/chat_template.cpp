// Tests of chat templates.
#include <atomic>
#include <thread>

#include <titan/chat_template.h>
#include <titan/error.h>

#include "kit/jobs.h"
#include "kit/samples.h"

namespace titan::conformance::chat_template_kind {
namespace {

std::unique_ptr<ChatTemplate> opened(TestContext& test) {
  return test.make<ChatTemplate>(
      {test.key("model.hf_assets_path", write_tokenizer(test.place().folder).string())});
}

Value conversation(std::initializer_list<std::pair<const char*, std::string>> turns) {
  Value messages = Value::list();
  for (const auto& [role, content] : turns)
    messages.as_list().push_back(Value::map({{"role", role}, {"content", content}}));
  return Value::map({{"messages", std::move(messages)}});
}

const std::string kQuestion = "What is 3 + 4?", kAnswer = "It is 7.", kNext = "And 5 + 6?",
                  kSystem = "Count with care.";

void expect_contents(TestContext& test, const std::string& text,
                     std::initializer_list<std::string> contents) {
  size_t at = 0;
  for (const std::string& content : contents) {
    at = text.find(content, at);
    test.expect(at != std::string::npos,
                "the text does not hold the contents of the messages in "
                "their order; '",
                content, "' is missing: ", to_json(Value(text)));
    at += content.size();
  }
}

void renders(TestContext& test) {
  const auto chat = opened(test);
  const std::pair<const char*, std::string> first{"user", kQuestion}, second{"assistant", kAnswer},
      third{"user", kNext}, system{"system", kSystem};
  expect_contents(test, chat->render(conversation({first, second, third}), false),
                  {kQuestion, kAnswer, kNext});
  std::string text;
  try {
    text = chat->render(conversation({system, first, second}), false);
  } catch (const Error&) {
    return;  // a template may reject system messages, but not drop them
  }
  expect_contents(test, text, {kSystem, kQuestion, kAnswer});
}

void roles(TestContext& test) {
  const auto chat = opened(test);
  const std::string as_user = chat->render(conversation({{"user", kQuestion}}), false);
  const std::string as_both =
      chat->render(conversation({{"user", kQuestion}, {"assistant", kQuestion}}), false);
  std::string one_turn = as_both.substr(std::min(as_both.size(), as_user.size()));
  test.expect(
      as_both.size() > as_user.size() + kQuestion.size(),
      "an answer adds its content and nothing that tells whose it is: ", to_json(Value(as_both)));
}

void generation_prompt(TestContext& test) {
  const auto chat = opened(test);
  const Value talk = conversation({{"user", kQuestion}});
  const std::string without = chat->render(talk, false), with = chat->render(talk, true);
  test.expect(with.starts_with(without),
              "the text with a generation prompt does not begin with "
              "the text without it");
  const std::string answered =
      chat->render(conversation({{"user", kQuestion}, {"assistant", kAnswer}}), false);
  test.expect(answered.starts_with(without),
              "the text of a longer conversation does not begin with the text of its first turn");
}

void same_text(TestContext& test) {
  const auto chat = opened(test), other = opened(test);
  const Value talk = conversation({{"user", kQuestion}, {"assistant", kAnswer}});
  const std::string first = chat->render(talk, false);
  test.expect(first == chat->render(talk, false) && first == other->render(talk, false),
              "a second call gives another text");
}

void threads(TestContext& test) {
  const auto chat = opened(test);
  std::vector<Value> talks;  // one per thread, so that a mix-up shows
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i) {
    talks.push_back(conversation(
        {{"user", kQuestion + std::string(static_cast<size_t>(i), '?')}, {"assistant", kAnswer}}));
    expected.push_back(chat->render(talks.back(), true));
  }
  std::atomic<int> num_wrong = 0;
  std::vector<std::thread> renderers;
  for (size_t i = 0; i < talks.size(); ++i)
    renderers.emplace_back([&, i] {
      try {
        for (int pass = 0; pass < 50; ++pass)
          if (chat->render(talks[i], true) != expected[i]) ++num_wrong;
      } catch (...) {
        ++num_wrong;
      }
    });
  for (std::thread& renderer : renderers) renderer.join();
  test.expect(num_wrong == 0, "4 threads that render at once get other texts or errors");
}

void contents_kept(TestContext& test) {
  const auto chat = opened(test);
  for (const std::string& content :
       {std::string("{{ 1 + 1 }} {% if x %}"), std::string("<|im_end|> </s> [INST]"),
        std::string("日本語 \"quoted\" \\n"), std::string("a\nb\n\nc")}) {
    const std::string text = chat->render(conversation({{"user", content}}), false);
    test.expect(text.find(content) != std::string::npos, "the content ", to_json(Value(content)),
                " is not in the text unchanged: ", to_json(Value(text)));
  }
}

void malformed(TestContext& test) {
  const auto chat = opened(test);
  for (const char* json : {"{}", "{\"messages\": [{\"content\": \"no role\"}]}",
                           "{\"messages\": [3]}", "{\"messages\": \"text\"}"}) {
    try {
      chat->render(parse_json(json), false);
    } catch (const Error& error) {
      test.expect(error.kind() != ErrorKind::internal, "the conversation ", json,
                  " is an error of the kind internal: ", error.what());
    }
  }
}

}  // namespace
}  // namespace titan::conformance::chat_template_kind

namespace titan::conformance {

std::vector<Test> chat_template_tests() {
  using namespace chat_template_kind;
  constexpr const char* kKind = "chat_template";
  return {
      {kKind, "renders", "The text holds the contents of all messages in their order.", renders},
      {kKind, "roles", "The text of an answer holds more than its content: it tells whose it is.",
       roles},
      {kKind, "generation_prompt",
       "The texts with a generation prompt and with a further answer begin with the text without "
       "them.",
       generation_prompt},
      {kKind, "deterministic", "Two calls and two objects give the same text.", same_text},
      {kKind, "threads", "Four threads that render at once get the text that one thread gets.",
       threads},
      {kKind, "contents_kept",
       "Contents that look like markup or special tokens are in the text unchanged.",
       contents_kept},
      {kKind, "malformed",
       "A malformed conversation is rendered, or is a titan::Error that is not of the kind "
       "internal.",
       malformed},
  };
}

}  // namespace titan::conformance
