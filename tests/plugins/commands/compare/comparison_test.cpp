// Comparisons of generated runs with known divergence.
#include "plugins/commands/compare/comparison.h"

#include <gtest/gtest.h>
#include <titan/error.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::commands {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

/// One line of a trace; only the fields that the tests use.
struct MadeUpTensor {
  std::string kind, name;
  int64_t phase = 1, microbatch = 0, sequence = 0;
  std::string hash = "1";
  double mean = 0.5;
  std::string more = "";  // "row" and "rows", or "offsets" and "of"
  std::string shape = "[2,4]";
};

/// The folder of a run, written line by line.
class MadeUpRun {
 public:
  MadeUpRun() {
    folder_.write("config.toml", "[optimizer]\nlr = 0.001\n[job]\ndump_folder = \"a\"\n");
  }

  MadeUpRun& config(const std::string& text) {
    folder_.write("config.toml", text);
    return *this;
  }
  MadeUpRun& step(int64_t number, const std::string& loss, double norm = 1) {
    metrics_ += "{\"step\":" + std::to_string(number) + ",\"wall_time\":" + std::to_string(rand()) +
                ",\"loss_metrics/global_avg_loss\":" + loss +
                ",\"grad_norm\":" + to_json(Value(norm)) +
                ",\"memory/max_active(GiB)\":" + std::to_string(rand()) + "}\n";
    folder_.write("metrics.jsonl", metrics_);
    return *this;
  }
  MadeUpRun& fingerprints(const std::string& text) {
    folder_.write("fingerprints.jsonl", text);
    return *this;
  }
  MadeUpRun& trace(int rank, const std::string& axes, const std::vector<MadeUpTensor>& tensors,
                   int64_t step = 1) {
    std::string& text = traces_[rank];
    if (text.empty())
      text = "{\"trace\":[\"*\"],\"rank\":" + std::to_string(rank) +
             ",\"world_size\":2,\"axes\":" + axes + ",\"from_step\":1}\n";
    for (const MadeUpTensor& t : tensors)
      text += "{\"step\":" + std::to_string(step) + ",\"attempt\":1,\"tensor\":\"" + t.kind +
              "\",\"name\":\"" + t.name + "\",\"key\":[" + std::to_string(t.phase) + "," +
              std::to_string(t.microbatch) + ",0," + std::to_string(t.sequence) +
              "],\"dtype\":\"Float\",\"shape\":" + t.shape +
              ",\"count\":8,\"mean\":" + to_json(Value(t.mean)) +
              ",\"rms\":1.0,\"min\":-2.0,\"max\":2.0,\"nan\":0,\"inf\":0,\"hash\":\"" + t.hash +
              "\"" + t.more + "}\n";
    folder_.write("tensor_trace/rank_" + std::to_string(rank) + ".jsonl", text);
    return *this;
  }
  RunRecord read() const { return read_run(folder_.path()); }
  const TestFolder& folder() const { return folder_; }

 private:
  TestFolder folder_;
  std::string metrics_;
  std::map<int, std::string> traces_;
};

Comparison compared(const MadeUpRun& a, const MadeUpRun& b, double tolerance = 0) {
  return compare(a.read(), b.read(), tolerance);
}

TEST(Comparison, OfEqualRunsFindsNothingWhateverTheirTimesAndFolders) {
  MadeUpRun a, b;
  a.step(1, "2.5").step(2, "2.25");
  b.config("[optimizer]\nlr = 0.001\n[job]\ndump_folder = \"b\"\n").step(1, "2.5").step(2, "2.25");
  const Comparison c = compared(a, b);
  EXPECT_TRUE(c.are_same());
  EXPECT_TRUE(c.config.empty());
  EXPECT_EQ(c.num_harmless, 1);
  EXPECT_EQ(c.numbers.num_steps, 2);
  EXPECT_TRUE(holds(to_text(c), "no difference in what both runs recorded"));
  EXPECT_TRUE(to_value(c).at("same").as_boolean());
}

TEST(Comparison, NamesWhatTheStartsResolvedDifferently) {
  const auto started = [](int64_t ranks, int64_t tokens) {
    return "{\"event\":\"start\",\"time\":1,\"resumed_step\":0,\"world_size\":" +
           std::to_string(ranks) + ",\"tokens_per_step\":" + std::to_string(tokens) +
           ",\"device\":\"CPU\",\"titan\":\"titan 0.1.0\"}\n";
  };
  MadeUpRun a, b, silent;
  a.step(1, "2.5").folder().write("history.jsonl", started(4, 4096) + started(1, 512));
  b.step(1, "2.5").folder().write("history.jsonl", started(2, 1024));
  silent.step(1, "2.5");
  const Comparison c = compared(a, b);
  EXPECT_TRUE(c.config.empty());
  ASSERT_EQ(c.start.size(), 2u);
  EXPECT_EQ(c.start[0].key, "ranks");
  EXPECT_EQ(c.start[0].first + " " + c.start[0].second, "1 2");
  EXPECT_EQ(c.start[1].key, "tokens a step");
  EXPECT_EQ(c.start[1].first + " " + c.start[1].second, "512 1024");
  EXPECT_TRUE(holds(to_text(c), "start: 2 differences"));
  EXPECT_EQ(to_value(c).at("start").as_list().size(), 2u);
  EXPECT_TRUE(holds(to_text(compared(a, a)), "ranks, tokens a step, device and build are equal"));
  EXPECT_FALSE(holds(to_text(compared(a, silent)), "start:"));
}

TEST(Comparison, NamesTheFirstStepAndEveryNumberThatDiffersThere) {
  MadeUpRun a, b;
  a.step(1, "2.5").step(2, "2.25").step(3, "2.0");
  b.step(1, "2.5").step(2, "2.2500000000000004", 1.5).step(3, "7.0");
  const Comparison c = compared(a, b);
  EXPECT_FALSE(c.are_same());
  EXPECT_EQ(c.numbers.parts_at, 2);
  EXPECT_EQ(c.numbers.last_equal, 1);
  ASSERT_EQ(c.numbers.differences.size(), 2u);
  EXPECT_EQ(c.numbers.differences[1].tag, "loss_metrics/global_avg_loss");
  const std::string text = to_text(c);
  EXPECT_TRUE(holds(text, "they diverge at step 2; the last equal step recorded before it is 1"));
  EXPECT_TRUE(holds(text, "2.2500000000000004"));
}

TEST(Comparison, ComparesTheStepsThatBothHave) {
  MadeUpRun a, b;
  a.step(1, "9").step(2, "2.25").step(4, "1.5");
  b.step(2, "2.25").step(3, "8").step(4, "1.75");
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.numbers.num_steps, 2);
  EXPECT_EQ(c.numbers.parts_at, 4);
}

TEST(Comparison, ToleratesWhatItIsTold) {
  MadeUpRun a, b;
  a.step(1, "2.0");
  b.step(1, "2.0001");
  EXPECT_FALSE(compared(a, b).are_same());
  EXPECT_FALSE(compared(a, b, 4e-5).are_same());
  EXPECT_TRUE(compared(a, b, 6e-5).are_same());
}

TEST(Comparison, TakesNaNForEqualToNaNAlone) {
  MadeUpRun a, b, d;
  a.step(1, "\"nan\"");
  b.step(1, "\"nan\"");
  d.step(1, "\"inf\"");
  EXPECT_TRUE(compared(a, b).are_same());
  EXPECT_FALSE(compared(a, d).are_same());
  EXPECT_FALSE(compared(a, d, 0.5).are_same());
}

TEST(Comparison, ListsConfigurationThatCanChangeNumbers) {
  MadeUpRun a, b;
  a.step(1, "1");
  b.config("[optimizer]\nlr = 0.002\neps = 1e-6\n[metrics]\nlog_freq = 5\n").step(1, "1");
  const Comparison c = compared(a, b);
  ASSERT_EQ(c.config.size(), 2u);
  EXPECT_EQ(c.config[0].key, "optimizer.eps");
  EXPECT_EQ(c.config[0].first, "");
  EXPECT_EQ(c.config[1].second, "0.002");
  EXPECT_EQ(c.num_harmless, 2);
  EXPECT_TRUE(c.are_same()) << "configurations do not change anything by themselves";
}

TEST(Comparison, TellsDataFromWeights) {
  MadeUpRun a, b;
  a.fingerprints(
      "{\"parameter\":\"w1\",\"xxh3\":\"aa\"}\n{\"parameter\":\"w2\",\"xxh3\":\"bb\"}\n"
      "{\"step\":1,\"tokens\":\"11\"}\n{\"step\":2,\"tokens\":\"22\"}\n");
  b.fingerprints(
      "{\"parameter\":\"w1\",\"xxh3\":\"aa\"}\n{\"parameter\":\"w2\",\"xxh3\":\"cc\"}\n"
      "{\"parameter\":\"w3\",\"xxh3\":\"dd\"}\n{\"step\":1,\"tokens\":\"11\"}\n"
      "{\"step\":2,\"tokens\":\"23\"}\n");
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.tokens.parts_at, 2);
  EXPECT_EQ(c.weights.different, std::vector<std::string>{"w2"});
  EXPECT_EQ(c.weights.only_second, std::vector<std::string>{"w3"});
  EXPECT_FALSE(c.are_same());
}

constexpr const char* kOneRank = "{\"pp\":1,\"dp_shard\":1}";
constexpr const char* kTwoRanks = "{\"pp\":1,\"dp_shard\":2}";

TEST(Comparison, NamesTheFirstTensorInTheOrderOfTheComputation) {
  MadeUpRun a, b;
  // written in another order than computed: the backward of one microbatch before the next forward
  a.trace(0, kOneRank,
          {{"output", "layers.0", 1, 0, 0},
           {"gradient of output", "layers.0", 2, 0, 0, "5"},
           {"output", "layers.1", 1, 1, 3, "7"}});
  b.trace(0, kOneRank,
          {{"output", "layers.0", 1, 0, 0},
           {"gradient of output", "layers.0", 2, 0, 0, "6"},
           {"output", "layers.1", 1, 1, 3, "8", 0.75}});
  const Comparison c = compared(a, b);
  ASSERT_TRUE(c.tensors.parts_at);
  EXPECT_EQ(c.tensors.parts_at->first.name, "layers.1");
  EXPECT_EQ(c.tensors.num_different, 2);
  EXPECT_EQ(c.tensors.before->name, "layers.0");
  const std::string text = to_text(c);
  EXPECT_TRUE(holds(text,
                    "they diverge in step 1, in the forward of microbatch 1, at the output of "
                    "layers.1 (rank 0)"));
  EXPECT_TRUE(holds(text, "0.75"));
  EXPECT_TRUE(holds(text, "2 of the step's 3 differ"));
}

TEST(Comparison, FindsTheFirstTracedStepAndRank) {
  MadeUpRun a, b;
  for (MadeUpRun* run : {&a, &b}) {
    const std::string last = run == &a ? "3" : "4";
    for (const int rank : {0, 1})
      run->trace(rank, kTwoRanks, {{"output", "layers.0"}}, 1)
          .trace(rank, kTwoRanks, {{"output", "layers.0", 1, 0, 0, rank == 1 ? last : "1"}}, 5);
  }
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.tensors.last_step, 5);
  EXPECT_EQ(c.tensors.parts_at->first.rank, 1);
}

TEST(Comparison, OfOtherLayoutsAddsUpThePieces) {
  MadeUpRun one, two;
  one.trace(0, kOneRank,
            {{"output", "layers.0", 1, 0, 0, "30", 0.5, ",\"row\":0,\"rows\":2"},
             {"output", "layers.0", 1, 1, 0, "40", 0.5, ",\"row\":2,\"rows\":2"},
             {"gradient", "w", 3, 0, 0, "9", 0.5, ",\"offsets\":[0,0],\"of\":[2,4]"}});
  const auto half = [](int rank, const std::string& hash) {
    return MadeUpTensor{
        "gradient", "w",  3,   0,
        0,          hash, 0.5, ",\"offsets\":[" + std::to_string(rank) + ",0],\"of\":[4,4]"};
  };
  two.trace(0, kTwoRanks, {{"output", "layers.0", 1, 0, 0, "30", 0.5, ",\"row\":0,\"rows\":2"}});
  two.trace(1, kTwoRanks,
            {{"output", "layers.0", 1, 0, 0, "40", 0.5, ",\"row\":2,\"rows\":2"}, half(2, "1")});
  const Comparison c = compared(one, two);
  EXPECT_FALSE(c.tensors.by_rank);
  EXPECT_EQ(c.tensors.num_tensors, 1) << "of the weight half is missing";
  EXPECT_FALSE(c.tensors.parts_at);
  two.trace(0, kTwoRanks, {{"output", "layers.0", 1, 0, 0, "31", 0.5, ",\"row\":0,\"rows\":2"}}, 2);
  one.trace(0, kOneRank, {{"output", "layers.0", 1, 0, 0, "30", 0.5, ",\"row\":0,\"rows\":2"}}, 2);
  EXPECT_TRUE(compared(one, two).tensors.parts_at);
}

TEST(Comparison, FindsCopiesOfAWeightThatDifferWithinOneRun) {
  MadeUpRun one, two;
  const auto copy = [](const std::string& hash) {
    return MadeUpTensor{"parameter", "w", 0, 0, 0, hash, 0.5, ",\"offsets\":[0,0],\"of\":[2,4]"};
  };
  one.trace(0, kOneRank, {copy("1")});
  two.trace(0, kTwoRanks, {copy("1")}).trace(1, kTwoRanks, {copy("2")});
  const Error error = error_of([&] { compared(one, two); });
  EXPECT_TRUE(holds(error.message(), "ranks 0 and 1 hold different copies of the weight w"));
}

TEST(Comparison, TakesTheLastRunOfAStepThatWasRunTwice) {
  MadeUpRun a, b;
  a.trace(0, kOneRank, {{"output", "layers.0", 1, 0, 0, "1"}});
  b.trace(0, kOneRank, {{"output", "layers.0", 1, 0, 0, "2"}});
  b.folder().write("tensor_trace/rank_0.jsonl",
                   b.folder().read("tensor_trace/rank_0.jsonl") +
                       a.folder().read("tensor_trace/rank_0.jsonl"));  // resumed before it
  EXPECT_TRUE(compared(a, b).are_same());
}

TEST(Comparison, NamesFileAndLineOfWhatCannotBeRead) {
  MadeUpRun a, b;
  a.step(1, "1");
  b.folder().write("metrics.jsonl", "{\"step\":1}\n{\"step\":\n{\"step\":3}\n");
  const Error error = error_of([&] { compared(a, b); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.message(), "metrics.jsonl:2: "));
  b.folder().write("metrics.jsonl", "{\"step\":1,\"grad_norm\":\"many\"}\n");
  EXPECT_TRUE(
      holds(error_of([&] { b.read(); }).message(), "metrics.jsonl:1: 'many' is not a number"));
}

TEST(Comparison, LeavesOutALastLineThatWasCutOff) {
  MadeUpRun a, b;
  a.step(1, "1");
  b.folder().write("metrics.jsonl",
                   "{\"step\":1,\"loss_metrics/global_avg_loss\":1.0}\n{\"step\":2,");
  EXPECT_TRUE(compared(a, b).are_same());
}

TEST(Comparison, RefusesFoldersThatAreNoRuns) {
  const TestFolder empty;
  EXPECT_TRUE(
      holds(error_of([&] { read_run(empty.path()); }).message(), "it holds no config.toml"));
  EXPECT_TRUE(
      holds(error_of([&] { read_run(empty.at("nowhere")); }).message(), "there is no folder"));
  MadeUpRun a, b;
  a.step(1, "1");
  b.step(2, "1");
  EXPECT_TRUE(holds(error_of([&] { compared(a, b); }).message(), "have no step in common"));
}

}  // namespace
}  // namespace titan::commands
