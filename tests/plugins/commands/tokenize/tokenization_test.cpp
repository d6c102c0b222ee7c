#include "plugins/commands/tokenize/tokenization.h"

#include <gmock/gmock.h>

#include <fstream>

#include "plugins/commands/tokenize/token_files.h"
#include "plugins/commands/tokenize/tokenize_journal.h"
#include "tests/plugins/commands/tokenize/fake_source.h"

namespace titan::tokenising {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tokenize_test::expected_documents;
using tokenize_test::FakeIndexed;
using tokenize_test::kFramed;
using tokenize_test::read_bytes;
using tokenize_test::read_output;
using tokenize_test::write_bytes;
using tokenize_test::WrittenTokenizer;

class TokenizationOutput : public tokenize_test::TokenizeTest {};

TEST_F(TokenizationOutput, HoldsEveryDocumentInOrderWhateverTheWorkersAndTheKindOfSource) {
  const auto expected = expected_documents(texts_, kFramed);
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&indexed_), static_cast<const Dataset*>(&streamed_)}) {
    request_.dataset = dataset;
    for (const int num_workers : {1, 2, 3, 4}) {
      request_.pipeline.num_workers = num_workers;
      request_.overwrite = true;
      const TokenizationState end = run();
      EXPECT_TRUE(end.is_complete);
      EXPECT_EQ(end.documents, 700);
      EXPECT_EQ(read_output(request_.prefix), expected) << num_workers;
      EXPECT_THAT(files(), ElementsAre("text.bin", "text.idx"));
    }
  }
}

TEST_F(TokenizationOutput, LeavesOutWhatIsNotWanted) {
  request_.framing = {.bos = std::nullopt, .eos = WrittenTokenizer::kEos};
  run();
  EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, request_.framing));
  request_.framing = {};
  request_.overwrite = true;
  run();  // documents without text have no token now
  EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, {}));
}

TEST_F(TokenizationOutput, TakesFourBytesFromTheVocabularySizeOnThatMegatronDoes) {
  for (const auto& [vocab_size, width] : {std::pair{65'499, 2u}, {65'500, 4u}}) {
    const WrittenTokenizer tokenizer(vocab_size, 400);
    request_.tokenizer = &tokenizer;
    request_.overwrite = true;
    const TokenizationState end = run();
    EXPECT_EQ(fs::file_size(output(".bin")), end.tokens * width);
    EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, kFramed, 400));
  }
}

class TokenisedDocuments final : public IndexedDataset {
 public:
  int64_t size() const override { return 100; }
  void read(int64_t index, Document& document) const override {
    document.is_tokenised = true;
    document.tokens = {static_cast<int32_t>(index), 299, 0};
    if (index == 77) document.tokens[1] = wrong_id;
  }
  std::string place(int64_t index) const override { return "tokens:" + std::to_string(index); }
  std::string fingerprint() const override { return "tokens"; }
  int32_t wrong_id = 299;
};

TEST_F(TokenizationOutput, CopiesTokenisedDocumentsAsTheyAre) {
  const TokenisedDocuments tokenised;
  request_.dataset = &tokenised;
  run();
  const auto documents = read_output(request_.prefix);
  ASSERT_EQ(documents.size(), 100u);
  for (int64_t i = 0; i < 100; ++i)
    EXPECT_THAT(documents[static_cast<size_t>(i)], ElementsAre(i, 299, 0));
}

TEST_F(TokenizationOutput, RefusesAnIdThatTheTokenizerDoesNotHave) {
  TokenisedDocuments tokenised;
  request_.dataset = &tokenised;
  for (const int32_t id : {300, -1}) {
    tokenised.wrong_id = id;
    EXPECT_THAT(error_of([&] { run(); }),
                AllOf(HasSubstr("tokens:77 has the id " + std::to_string(id)),
                      HasSubstr("0 to 299"), HasSubstr("model.hf_assets_path")));
  }
}

TEST_F(TokenizationOutput, NamesTheFirstBadDocumentWhicheverWorkerMeetsItAndGoesOnOnceItIsMended) {
  const auto expected = expected_documents(texts_, kFramed);
  for (const bool is_indexed : {true, false}) {
    if (!is_indexed) request_.dataset = &streamed_;
    auto& bad = is_indexed ? indexed_.bad : streamed_.bad;
    for (const int num_workers : {1, 2, 4}) {
      request_.pipeline.num_workers = num_workers;
      for (const int64_t k : {0, 5, 333, 699}) {
        bad = {k, k + 1, k + 40};
        EXPECT_THAT(error_of([&] { run(); }), HasSubstr("fake:" + std::to_string(k) + ": bad"));
        EXPECT_FALSE(fs::exists(output(".bin")) || fs::exists(output(".idx")));
        TokenizeJournal journal(output(".journal"));
        journal.load();
        EXPECT_LE(journal.last().next.documents, k);
        if (k > 300) {
          EXPECT_GT(journal.last().next.documents, 0);
        }
      }
      bad.clear();
      EXPECT_EQ(run().documents, 700);
      EXPECT_EQ(read_output(request_.prefix), expected);
      fs::remove_all(request_.prefix.parent_path());
    }
  }
}

TEST_F(TokenizationOutput, IsTheSameAfterAnyNumberOfStopsWithOtherWorkers) {
  run();
  const std::string bin = read_bytes(output(".bin")), idx = read_bytes(output(".idx"));
  for (const bool is_indexed : {true, false}) {
    if (!is_indexed) request_.dataset = &streamed_;
    request_.prefix = folder_ / "stopped" / "text";
    int64_t last = 0;
    for (int stops = 0; last < 450; ++stops) {
      request_.pipeline.num_workers = 1 + stops % 4;
      const TokenizationState state = run_until(last + 20 + 37 * (stops % 5));
      EXPECT_FALSE(state.is_complete);
      EXPECT_EQ(state.old_documents, last);
      TokenizeJournal journal(output(".journal"));
      journal.load();
      ASSERT_GE(journal.last().next.documents, last);
      last = journal.last().next.documents;
    }
    EXPECT_TRUE(run().is_complete);
    EXPECT_EQ(read_bytes(output(".bin")), bin);
    EXPECT_EQ(read_bytes(output(".idx")), idx);
    EXPECT_THAT(files(), ElementsAre("text.bin", "text.idx"));
    fs::remove_all(request_.prefix.parent_path());
  }
}

TEST_F(TokenizationOutput, CutsBackWhatAKillLeftBehindTheJournal) {
  run_until(200);
  for (const char* suffix : {".bin.part", ".sizes.part", ".journal"})
    std::ofstream(output(suffix), std::ios::app) << "{\"documents\": half a li";
  EXPECT_TRUE(run().is_complete);
  EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, kFramed));
}

TEST_F(TokenizationOutput, IsFinishedAfterAKillAnywhereBetweenTheRenames) {
  // an older result exists; the command must never mistake it for the new one
  for (const int instant : {0, 1, 2, 3, 4}) {
    request_.prefix = folder_ / std::to_string(instant) / "text";
    request_.overwrite = true;
    const FakeIndexed older(tokenize_test::mixed_texts(10));
    request_.dataset = &older;
    run();
    request_.dataset = &indexed_;
    request_.identity = Value::map({{"tokenizer", "newer"}});
    // stop when the journal is complete
    const TokenizationState state = tokenise(request_, [&](const TokenizationState&) {
      return read_bytes(output(".journal")).find("\"is_complete\":true") == std::string::npos;
    });
    EXPECT_FALSE(state.is_complete);
    if (instant >= 1) fs::remove(output(".idx"));
    if (instant >= 2) fs::rename(output(".bin.part"), output(".bin"));
    if (instant >= 2) request_.overwrite = false;  // the file is this run's own
    if (instant >= 3) {
      // finish, then restore the files that a kill before the last removals leaves
      const std::string sizes = read_bytes(output(".sizes.part"));
      const std::string journal = read_bytes(output(".journal"));
      EXPECT_TRUE(run().is_complete);
      write_bytes(output(".journal"), journal);
      if (instant == 3) write_bytes(output(".sizes.part"), sizes);
    }
    EXPECT_TRUE(run().is_complete) << instant;
    EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, kFramed)) << instant;
    EXPECT_THAT(files(), ElementsAre("text.bin", "text.idx"));
  }
}

TEST_F(TokenizationOutput, NeverLeavesAnOlderIndexBesideNewIds) {
  const FakeIndexed older(tokenize_test::mixed_texts(10));
  request_.dataset = &older;
  run();
  request_.dataset = &indexed_;
  request_.overwrite = true;
  // the new ids cannot be renamed, so the files are those after a kill at this moment
  fs::remove(output(".bin"));
  fs::create_directories(output(".bin") / "full");
  EXPECT_THROW(run(), Error);
  EXPECT_FALSE(fs::exists(output(".idx")));
}

TEST_F(TokenizationOutput, RefusesToReplaceAResultUnlessAskedTo) {
  run();
  const std::string bin = read_bytes(output(".bin"));
  EXPECT_THAT(error_of([&] { run(); }), AllOf(HasSubstr("the output exists"), HasSubstr("text.bin"),
                                              HasSubstr("--overwrite")));
  fs::remove(output(".bin"));
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("text.idx"));
  EXPECT_THAT(files(), ElementsAre("text.idx"));
  request_.overwrite = true;
  run();
  EXPECT_EQ(read_bytes(output(".bin")), bin);
}

TEST_F(TokenizationOutput, KeepsTheOlderResultUntilTheNewOneIsThere) {
  run();
  const std::string idx = read_bytes(output(".idx"));
  request_.overwrite = true;
  run_until(100);
  EXPECT_EQ(read_bytes(output(".idx")), idx);
  request_.overwrite = false;
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("the output exists"));
}

TEST_F(TokenizationOutput, SaysWhatDiffersFromTheUnfinishedWork) {
  request_.identity = Value::map({{"tokenizer", "bytes"}, {"token after each document", 257}});
  run_until(100);
  request_.identity = Value::map({{"tokenizer", "other"}, {"token after each document", Value()}});
  EXPECT_THAT(
      error_of([&] { run(); }),
      AllOf(HasSubstr("cannot continue"), HasSubstr("the tokenizer was 'bytes', now it is 'other'"),
            HasSubstr("the token after each document was 257, now it is null"),
            HasSubstr("--overwrite")));
  request_.overwrite = true;
  EXPECT_EQ(run().old_documents, 0);
  EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, kFramed));
}

TEST_F(TokenizationOutput, OverwriteGoesOnWithItsOwnUnfinishedWork) {
  request_.overwrite = true;
  run_until(200);
  EXPECT_GT(run().old_documents, 0);
}

TEST_F(TokenizationOutput, IsNotTrustedWhenItIsShorterThanTheJournalSays) {
  run_until(200);
  for (const char* suffix : {".bin.part", ".sizes.part"}) {
    const std::string whole = read_bytes(output(suffix));
    write_bytes(output(suffix), whole.substr(0, 1));  // workers may be far ahead of the journal
    EXPECT_THAT(error_of([&] { run(); }),
                AllOf(HasSubstr(suffix), HasSubstr("the journal"), HasSubstr("--overwrite")));
    if (suffix == std::string(".bin.part")) write_bytes(output(suffix), whole);
  }
  request_.overwrite = true;
  EXPECT_EQ(run().old_documents, 0);
  EXPECT_EQ(read_output(request_.prefix), expected_documents(texts_, kFramed));
}

TEST_F(TokenizationOutput, IsNotTrustedWhenTheJournalCannotBeRead) {
  for (const auto& [line, text] :
       std::vector<std::pair<std::string, std::string>>{{"line 1", "{]\n{}\n"},
                                                        {"line 1", "[]\n"},
                                                        {"line 2", "{}\n{\"documents\": -1}\n{}\n"},
                                                        {"line 2", "{}\n7\n{}\n"}}) {
    fs::create_directories(request_.prefix.parent_path());
    write_bytes(output(".journal"), text);
    request_.overwrite = false;
    EXPECT_THAT(error_of([&] { run(); }),
                AllOf(HasSubstr("text.journal, " + line), HasSubstr("--overwrite")));
    request_.overwrite = true;
    EXPECT_TRUE(run().is_complete);
  }
}

TEST_F(TokenizationOutput, BelongsToOneProcessAtATime) {
  const std::string message = error_of([&] {
    tokenise(request_, [&](const TokenizationState&) {
      run();
      return true;
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("another titan tokenize"), HasSubstr("text.journal")));
  EXPECT_TRUE(run().is_complete);
}

TEST_F(TokenizationOutput, NeedsADocument) {
  const FakeIndexed empty({});
  request_.dataset = &empty;
  EXPECT_THAT(error_of([&] { run(); }), HasSubstr("no document"));
}

}  // namespace
}  // namespace titan::tokenising
