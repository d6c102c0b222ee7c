#include "core/data/window_feed.h"

#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/program/clock.h>

#include "core/data/fake_text.h"
#include "core/data/order/round_robin_documents.h"

namespace titan::core {
namespace {

using ::testing::HasSubstr;
using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;
using titan::testing::ShardedDataset;
using Tokens = std::vector<int32_t>;

const ByteTokenizer kTokenizer;

/// Data sets, a batch and an order, drawn at random from a seed.
struct DrawnRun {
  std::vector<std::shared_ptr<Dataset>> datasets;
  std::vector<Source> sources;
  FeedOptions options;
};

DrawnRun draw(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  DrawnRun drawn;
  const int64_t num_sources = 1 + below(3);
  for (int64_t i = 0; i < num_sources; ++i) {
    std::vector<int64_t> lengths;
    const int64_t longest = 1 + below(40);
    const int64_t count = 3 + below(60);
    const int64_t shortest =
        longest >= 10 && count >= 30 ? 0 : 1;  // empty documents, not empty rows
    for (int64_t d = 0; d < count; ++d) lengths.push_back(shortest + below(longest + 1 - shortest));
    lengths.push_back(longest);
    const int64_t base = 10000 * i;
    if (below(2)) {
      drawn.datasets.push_back(std::make_shared<NumberedDataset>(lengths, -1, base));
    } else {
      std::vector<int64_t> shards;
      for (auto left = static_cast<int64_t>(lengths.size()); left > 0; left -= shards.back())
        shards.push_back(std::min(left, 1 + below(20)));
      drawn.datasets.push_back(std::make_shared<ShardedDataset>(lengths, shards, base));
    }
    drawn.sources.push_back({std::string(1, static_cast<char>('a' + i)),
                             1 + static_cast<double>(below(9)), drawn.datasets.back().get()});
  }
  drawn.options.num_rows = drawn.options.num_own_rows = int64_t{1} << below(4);
  drawn.options.vocab_size = 1 << 20;
  drawn.options.order = {
      .shuffle = below(2) == 1, .shuffle_buffer = 1 + below(12), .seed = random()};
  drawn.options.packing = {.packing = below(3) ? Packing::concatenate : Packing::best_fit,
                           .window = 2 + below(30),
                           .labels_cross_documents = below(2) == 1};
  return drawn;
}

/// One rank of a run. `saved`: the states that all ranks of the previous run wrote.
std::unique_ptr<WindowFeed> make_feed(const DrawnRun& drawn, int64_t rank, int64_t num_ranks,
                                      int64_t num_rows, int64_t num_workers,
                                      const std::vector<FeedState>& saved = {}) {
  FeedOptions options = drawn.options;
  options.num_rows = num_rows;
  options.num_own_rows = num_rows / num_ranks;
  options.first_row = rank * options.num_own_rows;
  options.num_workers = num_workers;
  auto feed = std::make_unique<WindowFeed>(drawn.sources, kTokenizer, options);
  if (!saved.empty()) {
    FeedState all = saved[0];
    for (size_t i = 1; i < saved.size(); ++i)
      all.streams.insert(all.streams.end(), saved[i].streams.begin(), saved[i].streams.end());
    feed->restore(std::move(all));
  }
  return feed;
}

std::vector<Tokens> windows_of(const DrawnRun& drawn, int64_t count) {
  const auto feed = make_feed(drawn, 0, 1, drawn.options.num_rows, 1);
  std::vector<Tokens> windows;
  while (static_cast<int64_t>(windows.size()) < count)
    for (Window& window : feed->next_step()) windows.push_back(std::move(window.tokens));
  return windows;
}

// The main guarantee: for any sources, number of ranks, number of threads and interruptions, the
// tokens and their order equal those of one uninterrupted rank.
TEST(WindowFeed, EveryLayoutWorkerCountAndKillPointGivesTheUninterruptedOrder) {
  for (int seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const DrawnRun drawn = draw(seed);
    std::mt19937 random(static_cast<unsigned>(1000 + seed));
    const int64_t rows = drawn.options.num_rows;
    const std::vector<Tokens> expected = windows_of(drawn, 30 * rows);

    std::vector<Tokens> seen;
    std::vector<FeedState> saved;
    for (int run = 0; run < 4; ++run) {
      const int64_t num_ranks = std::min<int64_t>(rows, int64_t{1} << random() % 4);
      std::vector<std::unique_ptr<WindowFeed>> ranks;
      for (int64_t rank = 0; rank < num_ranks; ++rank)
        ranks.push_back(make_feed(drawn, rank, num_ranks, rows, 1 + random() % 3, saved));
      for (auto steps = random() % 6; steps > 0; --steps)
        for (auto& rank : ranks)
          for (Window& window : rank->next_step()) seen.push_back(std::move(window.tokens));
      saved.clear();
      // through text, as a checkpoint stores it; windows read ahead are lost
      for (auto& rank : ranks)
        saved.push_back(FeedState::from_value(parse_json(to_json(rank->state().to_value()))));
    }
    ASSERT_LE(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], expected[i]) << "window " << i;
  }
}

TEST(WindowFeed, AnotherGlobalBatchSizeReadsOnWithoutLossOrRepetition) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const DrawnRun drawn = draw(seed);
    std::mt19937 random(static_cast<unsigned>(2000 + seed));
    const std::vector<Tokens> expected = windows_of(drawn, 600);
    std::vector<Tokens> seen;
    std::vector<FeedState> saved;
    for (int run = 0; run < 4; ++run) {
      const int64_t rows =
          run == 0 ? drawn.options.num_rows : 1 + static_cast<int64_t>(random() % 12);
      int64_t num_ranks = 1 + static_cast<int64_t>(random() % 4);
      while (rows % num_ranks) --num_ranks;
      std::vector<std::unique_ptr<WindowFeed>> ranks;
      for (int64_t rank = 0; rank < num_ranks; ++rank)
        ranks.push_back(make_feed(drawn, rank, num_ranks, rows, 2, saved));
      for (auto steps = random() % 7; steps > 0; --steps)
        for (auto& rank : ranks)
          for (Window& window : rank->next_step()) seen.push_back(std::move(window.tokens));
      saved.clear();
      for (auto& rank : ranks) saved.push_back(rank->state());
    }
    ASSERT_LE(seen.size(), expected.size());
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], expected[i]) << "window " << i;
  }
}

// Older versions saved worker states without epochs.
TEST(WindowFeed, ReadsOnFromAStateWithoutEpochs) {
  for (int seed = 0; seed < 10; ++seed) {
    DrawnRun drawn = draw(seed);
    drawn.options.order.shuffle = false;
    const int64_t rows = drawn.options.num_rows;
    const auto before = make_feed(drawn, 0, 1, rows, 1);
    before->next_step();
    const std::string text = std::regex_replace(to_json(before->state().to_value()),
                                                std::regex("\"epochs\""), "\"no epochs\"");
    const auto resumed = make_feed(drawn, 0, 1, rows, 1, {FeedState::from_value(parse_json(text))});
    for (int64_t row = 0; const Window& window : resumed->next_step())
      EXPECT_EQ(window.tokens, windows_of(drawn, 2 * rows)[static_cast<size_t>(rows + row++)]);
  }
}

/// The order documented in source_access.h and packer.h, written in the simplest way: document g of
/// the endless epochs goes to stream g mod rows; each stream is cut into windows.
std::vector<Tokens> plain_order(const std::vector<int64_t>& lengths, int64_t rows, int64_t window,
                                int64_t count) {
  std::vector<Tokens> streams(static_cast<size_t>(rows));
  const auto size = static_cast<int64_t>(lengths.size());
  for (int64_t g = 0; g < 4000; ++g) {
    const Document document =
        titan::testing::numbered_document(g % size, lengths[static_cast<size_t>(g % size)]);
    Tokens& stream = streams[static_cast<size_t>(g % rows)];
    stream.insert(stream.end(), document.tokens.begin(), document.tokens.end());
  }
  std::vector<Tokens> windows;
  for (int64_t w = 0; w < count; ++w) {
    const Tokens& stream = streams[static_cast<size_t>(w % rows)];
    const int64_t begin = w / rows * window;
    EXPECT_LE(begin + window, static_cast<int64_t>(stream.size()));
    windows.emplace_back(stream.begin() + begin, stream.begin() + begin + window);
  }
  return windows;
}

TEST(WindowFeed, IndexedStreamedAndPlainOrderAreTheSame) {
  const std::vector<int64_t> lengths = {3, 9, 1, 4, 4, 12, 7, 2, 30, 5, 6};
  const NumberedDataset indexed(lengths);
  const ShardedDataset dealt(lengths, {4, 0, 7});  // fewer shards than rows: round-robin
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&indexed), static_cast<const Dataset*>(&dealt)}) {
    DrawnRun drawn;
    drawn.sources = {{"a", 1, dataset}};
    drawn.options = {
        .num_rows = 4, .num_own_rows = 4, .vocab_size = 1 << 20, .packing = {.window = 8}};
    EXPECT_EQ(windows_of(drawn, 80), plain_order(lengths, 4, 8, 80));
  }
}

TEST(WindowFeed, RowsThatDriftApartReadOnByPassesOfTheirOwn) {
  // every second document is long, so the rows of the short documents run far ahead
  std::vector<int64_t> lengths;
  for (int d = 0; d < 2000; ++d) lengths.push_back(d % 2 ? 400 : 1);
  const ShardedDataset dataset(lengths, {2000});
  RoundRobinDocuments tight(dataset, {}, 2, /*max_queued_bytes=*/20000);
  const size_t short_row = tight.add_row(0), long_row = tight.add_row(1);
  Document document;
  for (int i = 0; i < 900; ++i) {
    ASSERT_TRUE(tight.next(short_row, document));
    ASSERT_EQ(document.tokens[0], 10 * 2 * i);
  }
  for (int i = 0; i < 1100; ++i) {
    ASSERT_TRUE(tight.next(long_row, document));
    ASSERT_EQ(document.tokens[0], 10 * (2 * i % 2000 + 1));
  }
}

TEST(WindowFeed, RefusesToGoOnWithOtherData) {
  const NumberedDataset a({9, 9, 9}), b({9, 9, 9, 9});
  DrawnRun drawn;
  drawn.options = {
      .num_rows = 2, .num_own_rows = 2, .vocab_size = 1 << 20, .packing = {.window = 4}};
  drawn.sources = {{"a", 1, &a}};
  const auto error_with = [&](const DrawnRun& other) {
    const FeedState saved = make_feed(drawn, 0, 1, 2, 1)->state();
    try {
      make_feed(other, 0, 1, 2, 1, {saved});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  DrawnRun other = drawn;
  other.sources[0].dataset = &b;
  EXPECT_THAT(
      error_with(other),
      HasSubstr(
          "source \"a\" has fingerprint \"numbered 4\", in the checkpoint it had \"numbered 3\""));
  other = drawn;
  other.sources[0].name = "c";
  EXPECT_THAT(error_with(other), HasSubstr("has name \"c\""));
  other = drawn;
  other.sources[0].weight = 2;
  EXPECT_THAT(error_with(other), HasSubstr("has weight 2.0, in the checkpoint it had 1.0"));
  other = drawn;
  other.sources.push_back({"more", 1, &b});
  EXPECT_THAT(error_with(other), HasSubstr("from 1 sources, this run's from 2"));
  other = drawn;
  other.options.packing.packing = Packing::best_fit;
  EXPECT_THAT(error_with(other), HasSubstr("packs with best_fit"));
  other = drawn;
  other.options.packing.window = 5;
  EXPECT_EQ(error_with(other), "no error") << "another sequence length splits the same stream";
}

TEST(WindowFeed, AnErrorComesAtTheStepItBelongsToAndStays) {
  for (int64_t workers : {1, 3}) {
    const NumberedDataset dataset({20, 20, 20, 20, 20, 20}, /*fails_at=*/4);
    DrawnRun drawn;
    drawn.sources = {{"a", 1, &dataset}};
    drawn.options = {
        .num_rows = 1, .num_own_rows = 1, .vocab_size = 1 << 20, .packing = {.window = 20}};
    const auto feed = make_feed(drawn, 0, 1, 1, workers);
    for (int i = 0; i < 4; ++i) EXPECT_NO_THROW(feed->next_step()) << i;
    EXPECT_THROW(feed->next_step(), Error);
    EXPECT_THROW(feed->next_step(), Error);
  }
}

TEST(WindowFeed, ASourceThatHangsIsAnErrorWithItsPlace) {
  // never destroyed: the hanging thread uses it until the program ends
  static NumberedDataset& dataset = *new NumberedDataset(std::vector<int64_t>(50, 20));
  dataset.hangs_at = 5;
  DrawnRun drawn;
  drawn.sources = {{"web", 1, &dataset}};
  drawn.options = {.num_rows = 1,
                   .num_own_rows = 1,
                   .vocab_size = 1 << 20,
                   .timeout_seconds = 5,
                   .seconds_to_notice = 2,
                   .packing = {.window = 20}};
  auto feed = make_feed(drawn, 0, 1, 1, 1);
  for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(feed->next_step()) << i;
  ::testing::internal::CaptureStderr();
  try {
    feed->next_step();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("numbered:5 of source 'web'"));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("s: the data of this step: 0 of 1 rows are ready, reading numbered:5 of "
                        "source 'web'"));
  EXPECT_TRUE(feed->has_stalled());
  feed.reset();  // does not wait for the hanging thread
  dataset.hangs_at = -1;
}

// Each row is quick, but all rows together are slow.
TEST(WindowFeed, AFirstStepThatTakesLongSaysWhatItDoes) {
  const ShardedDataset dataset(std::vector<int64_t>(40, 20), {20, 20}, 0, /*seconds=*/0.02);
  DrawnRun drawn;
  drawn.sources = {{"web", 1, &dataset}};
  drawn.options = {.num_rows = 2,
                   .num_own_rows = 2,
                   .vocab_size = 1 << 20,
                   .seconds_to_notice = 0.6,
                   .order = {.shuffle = true, .shuffle_buffer = 20},
                   .packing = {.window = 20}};
  const auto feed = make_feed(drawn, 0, 1, 2, 1);
  ::testing::internal::CaptureStderr();
  feed->start();
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr(" of 2 rows are ready, reading sharded:"));
  EXPECT_THAT(told,
              HasSubstr("data.shuffle reads up to 20 documents of a row before it shuffles them"));
}

// Prefetching hides reading behind computing: counted in documents, independent of the time that
// either takes.
TEST(WindowFeed, ReadsTheNextStepsWhileNobodyAsksForThem) {
  constexpr int64_t kAhead = 3, kSteps = 20;
  for (int64_t workers : {1, 2}) {
    const NumberedDataset dataset(std::vector<int64_t>(1000, 10));
    DrawnRun drawn;
    drawn.sources = {{"a", 1, &dataset}};
    drawn.options = {.num_rows = 1,
                     .num_own_rows = 1,
                     .vocab_size = 1 << 20,
                     .num_prefetched_steps = kAhead,
                     .packing = {.window = 10}};
    const auto feed = make_feed(drawn, 0, 1, 1, workers);
    for (int64_t step = 1; step <= kSteps; ++step) {
      feed->next_step();
      // a window needs most of a document; a feed that reads only on request never gets that far
      const double end = monotonic_seconds() + 600;
      while (dataset.reads < step + kAhead - 1 && monotonic_seconds() < end)
        std::this_thread::yield();
      ASSERT_GE(dataset.reads, step + kAhead - 1) << "after step " << step;
    }
    EXPECT_LE(dataset.reads, kSteps + kAhead + workers) << "none is read twice";
  }
}

TEST(WindowFeed, ReadsOnlyAsFarAheadAsAllowed) {
  const NumberedDataset dataset(std::vector<int64_t>(1000, 10), /*fails_at=*/30);
  DrawnRun drawn;
  drawn.sources = {{"a", 1, &dataset}};
  drawn.options = {.num_rows = 1,
                   .num_own_rows = 1,
                   .vocab_size = 1 << 20,
                   .num_prefetched_steps = 3,
                   .packing = {.window = 10}};
  const auto feed = make_feed(drawn, 0, 1, 1, 2);
  for (int i = 0; i < 20; ++i) feed->next_step();
  EXPECT_EQ(feed->state().streams[0].next, 20)
      << "the state covers only the windows that were returned";
}

TEST(WindowFeed, EachRowEndsByItself) {
  const NumberedDataset dataset({10, 4, 10});
  DrawnRun drawn;
  drawn.sources = {{"a", 1, &dataset}};
  drawn.options = {.num_rows = 2,
                   .num_own_rows = 2,
                   .vocab_size = 1 << 20,
                   .order = {.once = true},
                   .packing = {.window = 5, .once = true}};
  const auto feed = make_feed(drawn, 0, 1, 2, 2);
  int64_t targets = 0;
  std::vector<size_t> lengths;
  for (int i = 0; i < 6; ++i)
    for (const Window& window : feed->next_step()) {
      targets += window.num_targets;
      lengths.push_back(window.tokens.size());
    }
  EXPECT_EQ(targets, 4 * 4 + 3);
  EXPECT_EQ(lengths, (std::vector<size_t>{5, 5, 5, 0, 5, 0, 5, 0, 0, 0, 0, 0}));
}

TEST(OwnStreams, AreTheRowsOfTheRankUntilTheBatchChanges) {
  EXPECT_EQ(own_streams(8, 0, 8, 2, 2), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(own_streams(8, 0, 4, 1, 1), (std::vector<int64_t>{1, 5}))
      << "half the batch: two steps";
  EXPECT_EQ(own_streams(4, 0, 8, 2, 2), (std::vector<int64_t>{2, 3})) << "twice the batch";
  EXPECT_EQ(own_streams(4, 0, 6, 0, 1), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(own_streams(4, 7, 6, 0, 1), (std::vector<int64_t>{1, 3}))
      << "the previous run ended at 7";
  EXPECT_EQ(own_streams(4, 0, 5, 0, 1), (std::vector<int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace titan::core
