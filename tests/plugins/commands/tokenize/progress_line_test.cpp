#include "plugins/commands/tokenize/progress_line.h"

#include <gtest/gtest.h>

namespace titan::tokenising {
namespace {

TEST(ProgressLine, CountsTheRatesOfThisRunAlone) {
  const TokenizationState state = {.documents = 3000,
                                   .tokens = 40'000'000,
                                   .text_bytes = 150'000'000,
                                   .bin_bytes = 0,
                                   .shard = 0,
                                   .old_documents = 1000,
                                   .old_tokens = 0,
                                   .old_text_bytes = 50'000'000,
                                   .old_shard = 0,
                                   .is_complete = false};
  EXPECT_EQ(progress_line(state, {.documents = 5000, .shards = {}}, 4),
            "3,000 of 5,000 documents (60 %), 40.0 M tokens, 25.0 MB/s, 500 documents/s, "
            "10.0 M tokens/s, 4 s left");
}

TEST(ProgressLine, SaysNothingOfTheTimeLeftWhileThatWouldBeAGuess) {
  TokenizationState state;
  state.documents = 10;
  state.shard = 2;
  const SourceSize shards = {.documents = {}, .shards = 9};
  EXPECT_EQ(progress_line(state, shards, 6),
            "10 documents, 2 of 9 shards, 0 tokens, 2 documents/s, 0 tokens/s");
  state.shard = 3;
  EXPECT_NE(progress_line(state, shards, 6).find(", 12 s left"), std::string::npos);
  state.old_shard = 1;
  EXPECT_EQ(progress_line(state, shards, 6).find("left"), std::string::npos);
  state.documents = 0;
  EXPECT_EQ(progress_line(state, {.documents = 50, .shards = {}}, 6).find("left"),
            std::string::npos);
}

}  // namespace
}  // namespace titan::tokenising
