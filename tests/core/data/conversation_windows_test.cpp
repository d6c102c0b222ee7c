// From conversations to sequences: which conversations are skipped, how they are packed, and how a
// run resumes.
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include <titan/error.h>
#include <titan/log.h>

#include "core/data/fake_chat.h"
#include "core/data/fake_text.h"
#include "core/data/make_packer.h"
#include "core/data/order/source_access.h"

namespace titan::core {
namespace {

using titan::testing::chat;
using titan::testing::ChatMl;
using titan::testing::ChatTokenizer;
using titan::testing::completions;
using titan::testing::WrittenDataset;
using Tokens = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

const ChatMl kWindowTemplate;
const ChatTokenizer kChatTokenizer({.bos = 1000, .eos = 1001});

/// A packer of row 0 of 1 and its sources.
struct ChatRow {
  ChatRow(const Dataset& dataset, int64_t window, TooLong too_long = TooLong::error,
          bool once = true)
      : access(access_source("chats", dataset, 1, {.once = once})) {
    std::vector<BlendedReader> readers;
    readers.push_back({"chats", 1, access->open(0)});
    packer = make_packer(std::make_unique<RowReader>(
                             std::move(readers), kChatTokenizer, 1 << 20,
                             ConversationOptions{&kWindowTemplate, window, too_long, skipped}),
                         {.packing = Packing::best_fit,
                          .window = window,
                          .labels_cross_documents = false,
                          .once = once});
  }
  std::vector<Window> all() {
    std::vector<Window> windows;
    for (Window window; packer->next(window);) windows.push_back(window);
    return windows;
  }
  std::shared_ptr<SkippedDocuments> skipped = std::make_shared<SkippedDocuments>();
  std::unique_ptr<SourceAccess> access;
  std::unique_ptr<Packer> packer;
};

std::string error_of_row(ChatRow& row) {
  try {
    Window window;
    for (int i = 0; i < 10 && row.packer->next(window); ++i) {
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.message();
  }
  return "none";
}

TEST(ConversationWindows, HoldWhatIsLearnedAndWhereConversationsBegin) {
  const WrittenDataset dataset({completions({{"ab", "c"}}), completions({{"d", "ef"}})});
  ChatRow row(dataset, 12);
  const std::vector<Window> windows = row.all();
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].tokens,
            (Tokens{1000, 'a', 'b', 'c', 1001, 1000, 'd', 'e', 'f', 1001, 0, 0}));
  EXPECT_EQ(windows[0].is_target, (Mask{0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(windows[0].starts, (Tokens{0, 5, 10})) << "padding is the last";
  EXPECT_EQ(windows[0].num_targets, 5);
  EXPECT_EQ(windows[0].num_bytes, 3);
}

TEST(ConversationWindows, TextBesideConversationsKeepsItsTargets) {
  Document text;
  text.set_text("xy");
  const WrittenDataset dataset({text, completions({{"a", "b"}}), text});
  ChatRow row(dataset, 12);
  const std::vector<Window> windows = row.all();
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].tokens,
            (Tokens{1000, 'x', 'y', 1001, 1000, 'a', 'b', 1001, 1000, 'x', 'y', 1001}));
  EXPECT_EQ(windows[0].is_target, (Mask{1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(windows[0].num_targets, 3 + 2 + 3) << "the first token of a text has no context";
}

TEST(ConversationWindows, PairsAreNeitherPartedNorMixed) {
  std::vector<Document> documents;
  for (int i = 0; i < 300; ++i) {
    const std::string prompt(1 + static_cast<size_t>(i * 7 % 9), 'p');
    const std::string chosen(1 + static_cast<size_t>(i * 5 % 11), 'c');
    const std::string rejected(1 + static_cast<size_t>(i * 3 % 8), 'r');
    documents.push_back(completions({{prompt, chosen}, {prompt, rejected}}));
  }
  const WrittenDataset dataset(documents);
  ChatRow row(dataset, 64);
  int pairs = 0;
  for (const Window& window : row.all()) {
    size_t sequences = window.starts.size();
    if (window.num_tokens < 64) --sequences;  // padding
    ASSERT_EQ(sequences % 2, 0u);
    for (size_t s = 0; s < sequences; ++s) {
      const auto begin = static_cast<size_t>(window.starts[s]);
      const size_t end = s + 1 < window.starts.size() ? static_cast<size_t>(window.starts[s + 1])
                                                      : window.tokens.size();
      EXPECT_EQ(window.tokens[begin], 1000);
      EXPECT_EQ(window.tokens[end - 1], 1001);
      EXPECT_EQ(window.tokens[end - 2], s % 2 == 0 ? 'c' : 'r') << "the preferred one first";
    }
    pairs += static_cast<int>(sequences / 2);
  }
  EXPECT_EQ(pairs, 300);
}

TEST(ConversationWindows, WhatIsTooLongIsAnErrorThatSaysHowLong) {
  const WrittenDataset dataset({completions({{"ab", "c"}}), completions({{"abcd", "efg"}})});
  ChatRow row(dataset, 8);
  EXPECT_EQ(error_of_row(row),
            "written:1: the conversation has 9 tokens, more than the 8 that fit training.seq_len; "
            "make that longer, or choose data.too_long = \"skip\" or \"truncate\"");
}

TEST(ConversationWindows, WhatIsTooLongIsLeftOutAndCounted) {
  const WrittenDataset dataset(
      {completions({{"abcd", "efg"}}), completions({{"ab", "c"}}), completions({{"abcde", "ef"}})});
  ChatRow row(dataset, 8, TooLong::skip);
  const std::vector<Window> windows = row.all();
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].tokens, (Tokens{1000, 'a', 'b', 'c', 1001, 0, 0, 0}));
  EXPECT_EQ(row.skipped->count("chats", "left out, longer than a sequence (8 tokens)"), 2);
}

TEST(ConversationWindows, TruncationCutsTheEndOfOneButNeverOneOfTwo) {
  const WrittenDataset dataset({completions({{"ab", "cdefgh"}}),            // cut at its end
                                completions({{"abcdefgh", "i"}}),           // nothing left to learn
                                completions({{"ab", "c"}, {"ab", "d"}})});  // 10 tokens: skipped
  ChatRow row(dataset, 8, TooLong::truncate);
  const std::vector<Window> windows = row.all();
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].tokens, (Tokens{1000, 'a', 'b', 'c', 'd', 'e', 'f', 'g'}));
  EXPECT_EQ(windows[0].num_targets, 5);
  EXPECT_EQ(row.skipped->count("chats", "truncated, longer than a sequence (8 tokens)"), 2);
  EXPECT_EQ(row.skipped->count("chats", "left out, with nothing to learn"), 1);
  EXPECT_EQ(row.skipped->count("chats", "left out, longer than a sequence (8 tokens)"), 1);
}

TEST(ConversationWindows, WhatHasNothingToLearnIsLeftOut) {
  Value unlearned = chat({{"user", "a"}, {"assistant", "b"}});
  unlearned["messages"].as_list()[1]["weight"] = 0;
  Document document;
  document.conversations.push_back({.chat = unlearned});
  const WrittenDataset dataset({document, completions({{"ab", "c"}})});
  ChatRow row(dataset, 40);
  ASSERT_EQ(row.all().size(), 1u);
  EXPECT_EQ(row.skipped->count("chats", "left out, with nothing to learn"), 1);
  const WrittenDataset nothing({document});
  ChatRow never(nothing, 40, TooLong::error, /*once=*/false);
  const std::string error = error_of_row(never);
  EXPECT_NE(error.find("hold no token to learn"), std::string::npos);
  EXPECT_NE(error.find("data.too_long"), std::string::npos);
}

TEST(ConversationWindows, SequencesThatWouldCutConversationsRefuseThem) {
  const WrittenDataset dataset({completions({{"ab", "c"}})});
  auto access = access_source("chats", dataset, 1, {});
  std::vector<BlendedReader> readers;
  readers.push_back({"chats", 1, access->open(0)});
  RowReader reader(std::move(readers), kChatTokenizer, 1 << 20);
  TokenizedDocument document;
  EXPECT_THROW(reader.next(document), Error);
}

TEST(ConversationWindows, GoOnExactlyFromTheirState) {
  std::vector<Document> documents;
  for (int i = 0; i < 90; ++i)
    documents.push_back(
        completions({{std::string(1 + static_cast<size_t>(i * 7 % 30), 'p'), std::to_string(i)}}));
  const WrittenDataset dataset(documents);
  const log::Quiet quiet;
  for (const TooLong too_long : {TooLong::skip, TooLong::truncate})
    for (int steps = 0; steps < 120; steps += 7) {
      ChatRow straight(dataset, 24, too_long, false), resumed(dataset, 24, too_long, false);
      Window ours, theirs;
      for (int i = 0; i < steps; ++i) straight.packer->next(ours);
      resumed.packer->restore(parse_json(to_json(straight.packer->state())));
      for (int i = 0; i < 10; ++i) {
        straight.packer->next(ours);
        resumed.packer->next(theirs);
        EXPECT_EQ(ours.tokens, theirs.tokens);
        EXPECT_EQ(ours.is_target, theirs.is_target);
        EXPECT_EQ(ours.starts, theirs.starts);
      }
    }
}

}  // namespace
}  // namespace titan::core
