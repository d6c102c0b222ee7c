#include "core/data/make_packer.h"

#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "core/data/fake_text.h"
#include "core/data/order/source_access.h"

namespace titan::core {
namespace {

using titan::testing::ByteTokenizer;
using titan::testing::NumberedDataset;
using titan::testing::TextDataset;
using Tokens = std::vector<int32_t>;

/// A packer of row 0 of 1 and its source.
struct Row {
  Row(const Dataset& dataset, const Tokenizer& tokenizer, const PackingOptions& options)
      : access(access_source("a", dataset, 1, {.once = options.once})) {
    std::vector<BlendedReader> readers;
    readers.push_back({"a", 1, access->open(0)});
    packer =
        make_packer(std::make_unique<RowReader>(std::move(readers), tokenizer, 1 << 20), options);
  }
  Window next() {
    Window window;
    EXPECT_TRUE(packer->next(window));
    return window;
  }
  std::unique_ptr<SourceAccess> access;
  std::unique_ptr<Packer> packer;
};

std::vector<int64_t> random_lengths(int count, int longest, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<int64_t> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(1 + random() % static_cast<unsigned>(longest));
  return lengths;
}

TEST(Packer, FramesEachDocumentAndCutsWithoutOverlap) {
  const TextDataset dataset({"abc", "de"});
  const ByteTokenizer tokenizer({.bos = 1000, .eos = 1001});
  Row row(dataset, tokenizer, {.window = 4});
  EXPECT_EQ(row.next().tokens, (Tokens{1000, 'a', 'b', 'c'}));
  EXPECT_EQ(row.next().tokens, (Tokens{1001, 1000, 'd', 'e'}));
  EXPECT_EQ(row.next().tokens, (Tokens{1001, 1000, 'a', 'b'})) << "the next epoch, without a gap";
}

TEST(Packer, TokenisedDocumentsAreTakenAsTheyAre) {
  const NumberedDataset dataset({3, 2});
  const ByteTokenizer tokenizer({.bos = 1000, .eos = 1001});
  Row row(dataset, tokenizer, {.window = 5});
  EXPECT_EQ(row.next().tokens, (Tokens{0, 1, 2, 10, 11}));
}

TEST(Packer, SaysWhereDocumentsStartAndWhatIsATarget) {
  const NumberedDataset dataset({3, 2, 9});
  const ByteTokenizer tokenizer;
  Row across(dataset, tokenizer, {.window = 7});
  Window window = across.next();
  EXPECT_EQ(window.starts, (Tokens{0, 3, 5}));
  EXPECT_EQ(window.num_targets, 6);
  Row inside(dataset, tokenizer, {.window = 7, .labels_cross_documents = false});
  window = inside.next();
  EXPECT_EQ(window.num_targets, 4);
  EXPECT_EQ(inside.next().starts, (Tokens{0})) << "the rest of a document begins the window";
}

TEST(Packer, SharesTheBytesOfADocumentAmongItsTargets) {
  const TextDataset dataset({"abcdefgh", "ij"});
  const ByteTokenizer tokenizer;
  Row row(dataset, tokenizer, {.window = 6, .once = true});
  const Window first = row.next(), second = row.next();
  EXPECT_EQ(first.num_bytes, 5);
  EXPECT_EQ(second.num_bytes, 3) << "g of 'gh', which begins the window, is no target";
  EXPECT_EQ(second.num_targets, 3);
}

TEST(Packer, TheLastWindowOfARowThatEndsIsPadded) {
  const NumberedDataset dataset({3, 4});
  const ByteTokenizer tokenizer;
  for (const Packing packing : {Packing::concatenate, Packing::best_fit}) {
    Row row(dataset, tokenizer, {.packing = packing, .window = 5, .once = true});
    std::multiset<int32_t> seen;
    Window window;
    int64_t num_windows = 0;
    for (; row.packer->next(window); ++num_windows) {
      EXPECT_EQ(window.tokens.size(), 5u);
      seen.insert(window.tokens.begin(), window.tokens.begin() + window.num_tokens);
    }
    EXPECT_EQ(num_windows, 2);
    EXPECT_EQ(seen, (std::multiset<int32_t>{0, 1, 2, 10, 11, 12, 13}));
    EXPECT_FALSE(row.packer->next(window)) << "and stays at its end";
  }
}

TEST(Packer, ContinuesExactlyFromItsState) {
  const ByteTokenizer tokenizer;
  const NumberedDataset dataset(random_lengths(90, 23, 5));
  for (const Packing packing : {Packing::concatenate, Packing::best_fit})
    for (int steps = 0; steps < 150; steps += 7) {
      const PackingOptions options = {.packing = packing, .window = 6};
      Row straight(dataset, tokenizer, options);
      for (int i = 0; i < steps; ++i) straight.next();
      Row resumed(dataset, tokenizer, options);
      const std::string saved = to_json(straight.packer->state());
      EXPECT_LT(saved.size(), 200u) << "a few integers, for any number of waiting documents";
      resumed.packer->restore(parse_json(saved));
      EXPECT_EQ(to_json(resumed.packer->state()), saved);
      for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(straight.next().tokens, resumed.next().tokens);
        EXPECT_EQ(straight.packer->state(), resumed.packer->state());
      }
    }
}

TEST(BestFitPacker, CutsOnlyDocumentsThatAreLongerThanAWindowAndPadsLittle) {
  const ByteTokenizer tokenizer;
  const std::vector<int64_t> lengths = random_lengths(5000, 90, 11);
  const NumberedDataset dataset(lengths);
  Row row(dataset, tokenizer, {.packing = Packing::best_fit, .window = 65, .once = true});
  std::map<int32_t, std::vector<int64_t>> pieces;  // sizes of the pieces of each document
  int64_t num_tokens = 0, num_places = 0;
  for (Window window; row.packer->next(window);) {
    num_tokens += window.num_tokens, num_places += 65;
    for (size_t i = 0; i < window.starts.size(); ++i) {
      const int32_t begin = window.starts[i];
      const int32_t end = i + 1 < window.starts.size() ? window.starts[i + 1] : 65;
      if (begin >= window.num_tokens) continue;  // padding
      pieces[window.tokens[static_cast<size_t>(begin)] / 10].push_back(end - begin);
    }
  }
  ASSERT_EQ(pieces.size(), lengths.size());
  for (size_t d = 0; d < lengths.size(); ++d) {
    const auto& sizes = pieces[static_cast<int32_t>(d)];
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), lengths[d]);
    EXPECT_EQ(static_cast<int64_t>(sizes.size()), (lengths[d] + 64) / 65) << "document " << d;
  }
  EXPECT_LT(static_cast<double>(num_places - num_tokens) / static_cast<double>(num_places), 0.02);
}

TEST(BestFitPacker, GivesNoWindowWithoutATarget) {
  const ByteTokenizer tokenizer;
  const NumberedDataset dataset(std::vector<int64_t>(300, 66));  // one token more than a window
  const auto windows_of = [&](bool labels_cross) {
    Row row(dataset, tokenizer,
            {.packing = Packing::best_fit,
             .window = 65,
             .labels_cross_documents = labels_cross,
             .once = true});
    int64_t count = 0;
    for (Window window; row.packer->next(window); ++count)
      EXPECT_GT(window.num_targets, 0) << "window " << count;
    return count;
  };
  EXPECT_EQ(windows_of(false), 300);
  EXPECT_EQ(windows_of(true), 300 + 5) << "60 documents are read at a time, 64 tokens over";
}

TEST(BestFitPacker, DataWithoutATargetAreAnErrorAndNoEndlessSearch) {
  const ByteTokenizer tokenizer;
  const NumberedDataset dataset(std::vector<int64_t>(300, 1));
  const PackingOptions options = {
      .packing = Packing::best_fit, .window = 65, .labels_cross_documents = false};
  Row row(dataset, tokenizer, options);
  Window window;
  try {
    row.packer->next(window);
    FAIL() << "it found a target";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nothing to learn"), std::string::npos);
  }
  PackingOptions once = options;
  once.once = true;
  EXPECT_FALSE(Row(dataset, tokenizer, once).packer->next(window)) << "it ends";
}

TEST(Packer, ADamagedStateIsAnError) {
  const ByteTokenizer tokenizer;
  const NumberedDataset dataset({4, 4});
  for (const char* text :
       {"{}", "[]", "{\"reader\": []}", "{\"reader\": [{\"tokens\": -1}], \"used\": 0}",
        "{\"reader\": [{\"tokens\": 1, \"at\": {\"next\": \"x\"}}], \"used\": 0}"}) {
    Row row(dataset, tokenizer, {.window = 3});
    EXPECT_THROW(row.packer->restore(parse_json(text)), Error) << text;
  }
  Row row(dataset, tokenizer, {.window = 3});
  row.packer->restore(
      parse_json("{\"reader\": [{\"tokens\": 1, \"at\": {\"next\": 0}}], \"used\": 99}"));
  Window window;
  EXPECT_THROW(row.packer->next(window), Error) << "no document is that long";
}

}  // namespace
}  // namespace titan::core
