#include "plugins/commands/tokenize/token_pipeline.h"

#include <algorithm>
#include <thread>

#include <titan/program/clock.h>

#include "tests/plugins/commands/tokenize/fake_source.h"

namespace titan::tokenising {
namespace {

using tokenize_test::FakeIndexed;
using tokenize_test::FakeStreamed;
using tokenize_test::WrittenTokenizer;
using Taken = OrderedPieces::Taken;

constexpr int64_t kDocuments = 20'000;
const std::vector<std::string> kTexts(kDocuments, std::string(200, 'x'));
constexpr PipelineOptions kSmall = {
    .num_workers = 4, .block_bytes = 2000, .piece_bytes = 1000, .most_waiting_bytes = 20'000};
// queued bytes, and per worker a block of 10 documents and a piece; capacities may be twice the
// size
constexpr int64_t kMostAhead = (20'000 + 4 * (2000 + 2 * 1000)) / 200 * 2;

template <class Source>
int64_t most_read_ahead(const Source& source) {
  const WrittenTokenizer tokenizer;
  TokenPipeline pipeline(source, tokenizer, {}, {}, kSmall);
  TokenPiece piece;
  int64_t documents = 0, most = 0;
  for (int takes = 0; pipeline.take(piece, 60) == Taken::piece; ++takes) {
    // sometimes the writer is so slow that unbounded workers would finish
    const double end = monotonic_seconds() + (takes % 800 == 0 ? 0.05 : 0);
    while (monotonic_seconds() < end) std::this_thread::yield();
    most = std::max(most, source.reads - documents);
    documents += static_cast<int64_t>(piece.sizes.size());
  }
  EXPECT_EQ(documents, kDocuments);
  return most;
}

TEST(TokenPipeline, ReadsAheadOnlyAsFarAsItsMemoryReaches) {
  EXPECT_LE(most_read_ahead(FakeIndexed(kTexts)), kMostAhead);
  EXPECT_LE(most_read_ahead(FakeStreamed(kTexts, 5)), kMostAhead);
}

TEST(TokenPipeline, GivesPiecesOfABlockInOrderAndItsEndOnTheLast) {
  const FakeStreamed source(tokenize_test::mixed_texts(2000), 4);
  const WrittenTokenizer tokenizer;
  TokenPipeline pipeline(source, tokenizer, {}, {}, kSmall);
  TokenPiece piece;
  int64_t block = 0, documents = 0;
  while (pipeline.take(piece, 60) == Taken::piece) {
    EXPECT_EQ(piece.block, block);
    documents += static_cast<int64_t>(piece.sizes.size());
    if (!piece.end) continue;
    EXPECT_EQ(piece.end->documents, documents);
    ++block;
  }
  EXPECT_EQ(documents, 2000);
}

TEST(TokenPipeline, GoesOnAtThePlaceThatABlockEndedAt) {
  const FakeStreamed source(tokenize_test::mixed_texts(900), 6);
  const WrittenTokenizer tokenizer;
  std::string whole;
  std::vector<std::pair<SourcePosition, size_t>> ends;
  TokenPiece piece;
  TokenPipeline pipeline(source, tokenizer, {}, {}, kSmall);
  while (pipeline.take(piece, 60) == Taken::piece) {
    whole += piece.bytes;
    if (piece.end) ends.emplace_back(*piece.end, whole.size());
  }
  ASSERT_GT(ends.size(), 20u);
  for (size_t i = 0; i < ends.size(); i += 3) {
    std::string rest;
    TokenPipeline again(source, tokenizer, {}, ends[i].first, kSmall);
    while (again.take(piece, 60) == Taken::piece) rest += piece.bytes;
    EXPECT_EQ(rest, whole.substr(ends[i].second)) << i;
  }
}

TEST(TokenPipeline, EndsWhileWorkersWaitForTheWriter) {
  const FakeIndexed source(kTexts);
  const WrittenTokenizer tokenizer;
  for (int i = 0; i < 20; ++i) {
    TokenPipeline pipeline(source, tokenizer, {}, {}, kSmall);
    TokenPiece piece;
    if (i % 2) {
      EXPECT_EQ(pipeline.take(piece, 60), Taken::piece);
    }
  }
}

class BrokenTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view, std::vector<int32_t>& ids) const override {
    if (throws) fail(ErrorKind::data, "no such letter");
    ids.push_back(7);
  }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  int64_t vocab_size() const override { return 7; }
  SpecialTokens special_tokens() const override { return {}; }
  bool throws = false;
};

std::string first_error(const Dataset& source, const Tokenizer& tokenizer) {
  TokenPipeline pipeline(source, tokenizer, {}, {}, kSmall);
  TokenPiece piece;
  EXPECT_EQ(pipeline.take(piece, 60), Taken::piece);
  EXPECT_TRUE(piece.error);
  try {
    if (piece.error) std::rethrow_exception(piece.error);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(TokenPipeline, SaysWhichDocumentATokenizerFailsAt) {
  const FakeIndexed source({"a", "b"});
  BrokenTokenizer tokenizer;
  EXPECT_NE(first_error(source, tokenizer).find("fake:0 has the id 7"), std::string::npos);
  tokenizer.throws = true;
  const std::string message = first_error(source, tokenizer);
  EXPECT_NE(message.find("no such letter"), std::string::npos) << message;
  EXPECT_NE(message.find("while tokenizing fake:0"), std::string::npos) << message;
}

}  // namespace
}  // namespace titan::tokenising
