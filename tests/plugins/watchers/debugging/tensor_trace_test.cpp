// The entries of a trace for a step; writing it changes nothing.
#include "plugins/watchers/debugging/tensor_trace.h"

#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <titan/value.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"
#include "tests/plugins/watchers/debugging/debug_fixture.h"

namespace titan::debugging {
namespace {

using debug_test::DebuggedRun;
using debug_test::kNothing;
using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

struct TracedRun : DebuggedRun {
  TracedRun(const Options& options, const TestFolder& folder, int64_t resumed_step = 0)
      : DebuggedRun(dist::Mesh(), kNothing), trace(options, mesh) {
    ModelPart whole(tensor_test::small_llama(/*is_tied=*/false)());
    watch.add(trace);
    watch.match(whole);
    trace.check(watch.names());
    watch.attach(part);
    connect({&watch});
    trace.start(folder.path(), resumed_step, /*first_row=*/6);
  }
  void step(int64_t number) { DebuggedRun::step(number, {&watch, &trace}); }

  ModuleWatch watch;
  TensorTrace trace;
};

std::vector<Value> lines_of(const TestFolder& folder) {
  std::istringstream in(folder.read("tensor_trace/rank_0.jsonl"));
  std::vector<Value> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(parse_json(line));
  return lines;
}

std::string short_text(const Value& line) {
  return line.at("tensor").as_string() + " " + line.at("name").as_string() + " " +
         std::to_string(line.at("key").as_list()[1].as_integer());
}

TEST(TensorTrace, HoldsWhatIsAskedForInTheOrderOfTheComputation) {
  const TestFolder folder;
  TracedRun run({.trace_tensors = {"layers.1.attention.wo*"}}, folder);
  run.step(1);
  const std::vector<Value> lines = lines_of(folder);
  EXPECT_EQ(lines.front().at("axes").at("tp").as_integer(), 1);
  std::vector<std::string> texts;
  for (size_t i = 1; i < lines.size(); ++i) texts.push_back(short_text(lines[i]));
  const std::string of = " layers.1.attention.wo";
  EXPECT_EQ(texts,
            (std::vector<std::string>{
                "parameter" + of + ".weight 0", "input" + of + " 0", "output" + of + " 0",
                "gradient of output" + of + " 0", "gradient of one microbatch" + of + ".weight 0",
                "input" + of + " 1", "output" + of + " 1", "gradient of output" + of + " 1",
                "gradient of one microbatch" + of + ".weight 1", "gradient" + of + ".weight 0"}));
  EXPECT_EQ(lines[2].at("row").as_integer(), 6);
  EXPECT_EQ(lines[6].at("row").as_integer(), 6 + tensor_test::kRows);
  EXPECT_EQ(lines[1].at("of"), Value::list({64, 64}));
  EXPECT_EQ(lines[2].at("count").as_integer(), 3 * 16 * 64);
}

TEST(TensorTrace, ChangesNoLossAndNoGradient) {
  const TestFolder folder;
  TracedRun run({.trace_tensors = {"*"}}, folder);
  DebuggedRun plain(dist::Mesh(), kNothing);
  plain.connect({});
  run.step(1);
  plain.step(1, {});
  EXPECT_EQ(run.loss, plain.loss);
  EXPECT_EQ(run.norm, plain.norm);
}

TEST(TensorTrace, TakesTheStepsThatAreAskedFor) {
  const TestFolder folder;
  TracedRun run({.trace_tensors = {"output"},
                 .trace_tensors_from = 2,
                 .trace_tensors_until = 7,
                 .trace_tensors_every = 3},
                folder);
  for (int64_t step = 1; step <= 9; ++step) run.step(step);
  std::set<int64_t> steps;
  for (const Value& line : lines_of(folder))
    if (const Value* step = line.find("step")) steps.insert(step->as_integer());
  EXPECT_EQ(steps, (std::set<int64_t>{2, 5}));
}

TEST(TensorTrace, GoesOnBehindWhatAKilledRunHasLeft) {
  const TestFolder folder;
  {
    TracedRun run({.trace_tensors = {"output"}}, folder);
    run.step(1);
  }
  const size_t before = lines_of(folder).size();
  folder.write("tensor_trace/rank_0.jsonl", folder.read("tensor_trace/rank_0.jsonl") + "{\"st");
  TracedRun run({.trace_tensors = {"output"}}, folder, /*resumed_step=*/1);
  run.step(2);
  EXPECT_EQ(lines_of(folder).size(), 2 * before);
}

TEST(TensorTrace, RefusesPatternsThatFitNothing) {
  const TestFolder folder;
  const Error error = error_of([&] { TracedRun run({.trace_tensors = {"layer.*"}}, folder); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(), "debug.trace_tensors: 'layer.*' fits no layer"));
}

}  // namespace
}  // namespace titan::debugging
