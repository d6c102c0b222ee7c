// Which tokens of a conversation contribute to the loss, with a handwritten template and tokenizer.
// finetune_test.py compares with transformers.
#include "core/data/conversation_tokens.h"

#include <gtest/gtest.h>

#include <titan/error.h>

#include "core/data/fake_chat.h"

namespace titan::core {
namespace {

using titan::testing::chat;
using titan::testing::ChatMl;
using titan::testing::ChatTokenizer;

const ChatMl kChatMl;

TokenizedDocument tokens_of(const Conversation& conversation, SpecialTokens special = {}) {
  const ChatTokenizer tokenizer(special);
  TokenizedDocument document;
  ConversationTokens(tokenizer, &kChatMl).append(conversation, document);
  return document;
}

/// The tokens as text. Brackets enclose those that contribute to the loss.
std::string marked(const TokenizedDocument& document) {
  std::string text;
  bool is_in = false;
  for (size_t i = 0; i < document.tokens.size(); ++i) {
    if ((document.is_target[i] != 0) != is_in) text += is_in ? ']' : '[';
    is_in = document.is_target[i] != 0;
    const int32_t id = document.tokens[i];
    text += id == ChatTokenizer::kStart ? "<"
            : id == ChatTokenizer::kEnd ? ">"
            : id == 1000                ? "^"
            : id == 1001                ? "$"
            : id > ChatTokenizer::kBreaks
                ? std::string(static_cast<size_t>(id - ChatTokenizer::kBreaks), '|')
                : std::string(1, static_cast<char>(id));
  }
  return text + (is_in ? "]" : "");
}

std::string error_of_conversation(const Conversation& conversation) {
  try {
    tokens_of(conversation);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.message();
  }
  return "none";
}

TEST(ConversationTokens, AnswersAndWhatEndsTheirTurnAreLearned) {
  const TokenizedDocument document = tokens_of({.chat = chat({{"system", "be"},
                                                              {"user", "hi"},
                                                              {"assistant", "yes"},
                                                              {"user", "?"},
                                                              {"assistant", "no"}})});
  EXPECT_EQ(marked(document), "<system|be>|<user|hi>|<assistant|[yes>]|<user|?>|<assistant|[no>]|");
  EXPECT_EQ(document.num_bytes, 5) << "of the text, not of its framing";
  EXPECT_EQ(document.starts, std::vector<int32_t>{0});
}

TEST(ConversationTokens, OnlyAnswersFromTheFirstTargetOnAreLearned) {
  EXPECT_EQ(
      marked(tokens_of(
          {.chat = chat({{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}}),
           .first_target = 2})),
      "<user|a>|<assistant|b>|<user|c>|<assistant|[d>]|");
}

TEST(ConversationTokens, AnAnswerOfWeightZeroIsReadOnly) {
  Value weighted = chat({{"user", "a"}, {"assistant", "b"}, {"assistant", "c"}});
  weighted["messages"].as_list()[1]["weight"] = 0;
  weighted["messages"].as_list()[2]["weight"] = 1;
  EXPECT_EQ(marked(tokens_of({.chat = weighted})), "<user|a>|<assistant|b>|<assistant|[c>]|");
}

TEST(ConversationTokens, ATokenThatIsPartlyAnswerIsLearned) {
  // the line break of the template and those of the answer form one token
  EXPECT_EQ(marked(tokens_of({.chat = chat({{"user", "a\n"}, {"assistant", "\n\nb"}})})),
            "<user|a|>|<assistant[|||b>]|");
  EXPECT_EQ(marked(tokens_of({.prompt = "a\n", .completion = "\nb"})), "a[||b]");
}

TEST(ConversationTokens, AnAnswerWithoutWordsIsWhatEndsIt) {
  EXPECT_EQ(marked(tokens_of({.chat = chat({{"user", "a"}, {"assistant", ""}})})),
            "<user|a>|<assistant|[>]|");
}

TEST(ConversationTokens, ACompletionIsFramedAndLearnedWithItsEnd) {
  EXPECT_EQ(marked(tokens_of({.prompt = "1+1=", .completion = "2"}, {.bos = 1000, .eos = 1001})),
            "^1+1=[2$]");
  EXPECT_EQ(marked(tokens_of({.prompt = "", .completion = "ab"})), "a[b]")
      << "nothing predicts the first token";
  EXPECT_EQ(marked(tokens_of({.prompt = "<|im_end|>", .completion = "b"})), "<|im_end|>[b]")
      << "the text of a special token is plain text";
}

TEST(ConversationTokens, SeveralConversationsAreSequencesOfOneDocument) {
  const ChatTokenizer tokenizer;
  const ConversationTokens reader(tokenizer, nullptr);
  TokenizedDocument document;
  reader.append({.prompt = "ab", .completion = "c"}, document);
  reader.append({.prompt = "ab", .completion = "de"}, document);
  EXPECT_EQ(marked(document), "ab[c]ab[de]");
  EXPECT_EQ(document.starts, (std::vector<int32_t>{0, 3}));
}

TEST(ConversationTokens, ATemplateThatChangesWhatItHasRenderedIsRefused) {
  Value turns = chat({{"user", "a"}, {"assistant", "bc"}, {"user", "d"}, {"assistant", "e"}});
  turns["shortens"] = true;
  EXPECT_EQ(
      error_of_conversation({.chat = turns}),
      "the chat template renders message 2 differently when other messages follow: "
      "'bc<|im_end|>\\x0a' becomes '...<|im_end|>\\x0a<|im_start|>user\\x0ad<|im_end...'; so "
      "the answer's part of the text cannot be determined. Learn the last answer only (the data "
      "set's option 'learn'), or use a template that renders each turn the same at any position");
  EXPECT_EQ(marked(tokens_of({.chat = turns, .first_target = 3})),
            "<user|a>|<assistant|...>|<user|d>|<assistant|[e>]|");
  Value greeting = chat({{"user", "a"}, {"assistant", "b"}});
  greeting["greets"] = true;
  EXPECT_NE(error_of_conversation({.chat = greeting})
                .find("message 2 differently from the prompt that asks"),
            std::string::npos);
}

TEST(ConversationTokens, WhatTheTemplateRefusesIsAnErrorInItsWords) {
  EXPECT_EQ(error_of_conversation({.chat = chat({{"nobody", "a"}, {"assistant", "b"}})}),
            "nobody may not speak");
}

TEST(ConversationTokens, AChatNeedsATemplate) {
  const ChatTokenizer tokenizer;
  TokenizedDocument document;
  EXPECT_THROW(ConversationTokens(tokenizer, nullptr)
                   .append({.chat = chat({{"user", "a"}, {"assistant", "b"}})}, document),
               Error);
}

}  // namespace
}  // namespace titan::core
