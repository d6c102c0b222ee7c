// Tests of the chat template @FULL_NAME@, which is made with its options as in a run.
#include <gtest/gtest.h>

#include <titan/chat_template.h>
#include <titan/testing/component.h>

namespace {

using titan::Value;
using titan::testing::make;

Value message(const std::string& role, Value content) {
  return Value::map({{"role", role}, {"content", std::move(content)}});
}

Value conversation(std::initializer_list<Value> messages) {
  return Value::map({{"messages", Value::list(messages)}});
}

TEST(@CLASS@, WritesChatMl) {
  const auto chat_template = make<titan::ChatTemplate>("@FULL_NAME@");
  EXPECT_EQ(chat_template->render(conversation({message("user", "hi"), message("assistant", "hello")}), false),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n");
}

TEST(@CLASS@, TheFirstMessagesAreTheBeginningOfAll) {
  const auto chat_template = make<titan::ChatTemplate>("@FULL_NAME@", {{"system", "be brief"}});
  const std::string prompt = chat_template->render(conversation({message("user", "hi")}), true);
  const std::string whole = chat_template->render(conversation({message("user", "hi"), message("assistant", "hello")}), false);
  EXPECT_TRUE(whole.starts_with(prompt)) << prompt << "\n" << whole;
}

TEST(@CLASS@, ANewTemplateGivesTheSameText) {
  const Value chat = conversation({message("user", "hi")});
  EXPECT_EQ(make<titan::ChatTemplate>("@FULL_NAME@")->render(chat, true), make<titan::ChatTemplate>("@FULL_NAME@")->render(chat, true));
}

TEST(@CLASS@, WhatIsNoConversationIsRefused) {
  const auto chat_template = make<titan::ChatTemplate>("@FULL_NAME@");
  for (const Value& chat : {conversation({message("user", 7)}), conversation({"hi"}), Value::map({{"messages", "hi"}})})
    EXPECT_THROW(chat_template->render(chat, false), titan::Error);
}

}  // namespace
