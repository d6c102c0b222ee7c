// What a job needs for data sets of conversations. finetune_test.py checks the whole report.
#include "core/data/conversation_needs.h"

#include <gtest/gtest.h>

#include <titan/settings/diagnostics.h>

#include "core/data/fake_chat.h"
#include "core/data/fake_text.h"

namespace titan::core {
namespace {

using titan::testing::ByteTokenizer;
using titan::testing::chat;
using titan::testing::ChatMl;
using titan::testing::ChatTokenizer;
using titan::testing::completions;
using titan::testing::TextDataset;
using titan::testing::WrittenDataset;

Document chat_document() {
  Document document;
  document.conversations.push_back({.chat = chat({{"user", "a"}, {"assistant", "b"}})});
  return document;
}

JobConfig packing_config(Packing packing) {
  JobConfig config;
  config.tokenizer.name = "bytes";
  config.data.packing = packing;
  return config;
}

/// The report of missing components; empty when none is missing.
std::string missing(const Dataset& dataset, const Tokenizer& tokenizer,
                    const ChatTemplate* chat_template, bool isolates, const JobConfig& config) {
  try {
    require_for_conversations(needs_of(dataset, "chats"), tokenizer, chat_template, isolates,
                              config);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ConversationNeeds, TextNeedsNothing) {
  const TextDataset dataset({"a"});
  EXPECT_EQ(missing(dataset, ByteTokenizer(), nullptr, false, packing_config(Packing::concatenate)),
            "");
}

TEST(ConversationNeeds, CompletionsNeedSequencesThatKeepThemWhole) {
  const WrittenDataset dataset({completions({{"a", "b"}})});
  EXPECT_EQ(missing(dataset, ByteTokenizer(), nullptr, true, packing_config(Packing::best_fit)),
            "");
  const std::string report =
      missing(dataset, ByteTokenizer(), nullptr, false, packing_config(Packing::concatenate));
  EXPECT_NE(report.find("set data.packing = \"best_fit\""), std::string::npos) << report;
  EXPECT_NE(report.find("set data.isolate_documents = true"), std::string::npos) << report;
  EXPECT_EQ(report.find("template"), std::string::npos) << report;
}

TEST(ConversationNeeds, ChatsNeedATemplateAndATokenizerThatReadsWhatItWrites) {
  const ChatMl chat_ml;
  const WrittenDataset dataset({chat_document()});
  const JobConfig config = packing_config(Packing::best_fit);
  EXPECT_EQ(missing(dataset, ChatTokenizer(), &chat_ml, true, config), "");
  std::string report = missing(dataset, ChatTokenizer(), nullptr, true, config);
  EXPECT_NE(report.find("the job has no chat template"), std::string::npos) << report;
  report = missing(dataset, ByteTokenizer(), &chat_ml, true, config);
  EXPECT_NE(report.find("tokenizer 'bytes' does not read the special tokens"), std::string::npos)
      << report;
}

/// The conflict between the data and a loss that compares answers (or one that does not); empty
/// when there is none.
std::string wrong_with_loss(const Dataset& dataset, bool compares) {
  try {
    require_for_loss(needs_of(dataset, "answers"), compares, packing_config(Packing::best_fit));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ConversationNeeds, PairsOfAnswersNeedALossThatComparesThem) {
  Document pair = chat_document();
  pair.conversations.push_back({.chat = chat({{"user", "a"}, {"assistant", "c"}})});
  const WrittenDataset pairs({pair}), single({chat_document()});
  const TextDataset text({"a"});
  EXPECT_EQ(wrong_with_loss(pairs, true), "");
  EXPECT_NE(wrong_with_loss(pairs, false).find("would learn the rejected ones"), std::string::npos);
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&single), static_cast<const Dataset*>(&text)}) {
    EXPECT_EQ(wrong_with_loss(*dataset, false), "");
    EXPECT_NE(wrong_with_loss(*dataset, true).find("holds no such pairs"), std::string::npos);
  }
}

}  // namespace
}  // namespace titan::core
