// The text of Chrome traces: splitting, adding arrows, merging. tests/end_to_end/profiling_test.py
// opens the profiler's own files with other readers.
#include <filesystem>

#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/runs/overlaps.h>
#include <titan/runs/trace_text.h>
#include <titan/runs/traced_collectives.h>
#include <titan/value.h>

#include "plugins/commands/trace/merged_trace.h"

namespace titan::commands {
namespace {

/// Events in Kineto's format.
std::string comm(const std::string& name, int64_t sequence, double begin, int pid = 77,
                 const std::string& group = "fsdp") {
  return R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": )" +
         std::to_string(pid) + R"(, "tid": 77, "ts": )" + std::to_string(begin) +
         R"(, "dur": 5.000, "args": {"Collective name": ")" + name +
         R"(", "Process Group Name": ")" + group + R"(", "Concrete Inputs": [")" +
         std::to_string(sequence) + R"(", "64"]}})";
}

std::string trace(int rank, const std::vector<std::string>& events, int pid = 77,
                  int64_t base = 1000) {
  std::string text = R"({"schemaVersion": 1, "distributedInfo": {"rank": )" + std::to_string(rank) +
                     R"(, "pg_config": [{"pg_name": "fsdp", "ranks": [0, 1]},)"
                     R"( {"pg_name": "pp", "ranks": [0, 1]}]}, "baseTimeNanoseconds": )" +
                     std::to_string(base) + R"(, "traceEvents": [)" +
                     R"({"name": "process_labels", "ph": "M", "ts": 1, "pid": )" +
                     std::to_string(pid) + R"(, "tid": 0, "args": {"labels": "CPU"}})";
  for (const std::string& event : events) text += ",\n" + event;
  return text + "\n], \"traceName\": \"a ] } \\\" in a name\"}";
}

std::vector<Value> events_of(const std::string& text, const std::string& phase) {
  std::vector<Value> found;
  const Value trace = parse_json(text);
  for (const Value& event : trace.at("traceEvents").as_list())
    if (event.at("ph") == Value(phase)) found.push_back(event);
  return found;
}

TEST(TraceText, SplitsWhereTheEventsAre) {
  const std::string text = trace(0, {R"({"name": "a \" ] }", "args": {"x": [1, {}]}})"});
  const TraceParts parts = split_trace(text);
  ASSERT_EQ(parts.events.size(), 2u);
  EXPECT_EQ(member_text(parts.events[0], "labels"), "CPU");
  EXPECT_EQ(member_text(parts.events[1], "nothing"), "");
  EXPECT_EQ(trace_properties(parts).at("distributedInfo").at("rank"), Value(0));
  EXPECT_EQ(trace_properties(parts).find("traceEvents"), nullptr);
}

TEST(TraceText, SaysWhatIsNoTrace) {
  const std::string text = trace(0, {});
  for (const std::string& wrong : {std::string(), std::string("[]"), std::string("{\"a\": 1}"),
                                   std::string("{\"traceEvents\": [1]}"), text.substr(0, 150)})
    EXPECT_THROW(split_trace(wrong), Error) << wrong;
}

TEST(TracedCollectives, LeadFromEachStartToItsWait) {
  const std::string recorded =
      trace(0, {comm("all_gather", 1, 10), comm("all_gather", 2, 20),
                comm("wait for all_gather", 1, 30), comm("wait for all_gather", 2, 40),
                comm("wait for reduce_scatter", 9, 50)});  // started before the recording
  const TraceParts parts = split_trace(recorded);
  const std::string text = with_events(parts, wait_arrows(parts));
  const std::vector<Value> from = events_of(text, "s"), to = events_of(text, "f");
  ASSERT_EQ(from.size(), 2u);
  ASSERT_EQ(to.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(from[i].at("id"), to[i].at("id"));
    EXPECT_EQ(from[i].at("ts").as_number(), 10.0 * static_cast<double>(i + 1));
    EXPECT_EQ(to[i].at("ts").as_number(), 10.0 * static_cast<double>(i + 3));
    EXPECT_EQ(to[i].at("bp"), Value("e"));
  }
  EXPECT_NE(from[0].at("id"), from[1].at("id"));
}

std::string span(const std::string& name, double begin, double length, int tid = 77) {
  return R"({"ph": "X", "name": ")" + name + R"(", "pid": 77, "tid": )" + std::to_string(tid) +
         R"(, "ts": )" + std::to_string(begin) + R"(, "dur": )" + std::to_string(length) + "}";
}

TEST(TraceOverlaps, AreTakenOutOfTheNesting) {
  const std::string text =
      trace(0, {span("inner", 12, 3), span("outer", 10, 10), span("late", 18, 5),
                span("later", 19, 20), span("next", 20, 2), span("elsewhere", 15, 100, 78)});
  TraceParts parts = split_trace(text);
  const std::vector<std::string> taken = take_overlaps(parts);
  ASSERT_EQ(taken.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(member_text(taken[i], "name"), i < 2 ? "late" : "later");
    EXPECT_EQ(member_text(taken[i], "ph"), i % 2 == 0 ? "b" : "e");
  }
  EXPECT_EQ(member_text(taken[1], "ts"), "23.000");
  EXPECT_NE(member_text(taken[0], "id"), member_text(taken[2], "id"));
  std::vector<std::string_view> left;
  for (const std::string_view event : parts.events) left.push_back(member_text(event, "name"));
  EXPECT_EQ(left, (std::vector<std::string_view>{"process_labels", "inner", "outer", "next",
                                                 "elsewhere"}));
  EXPECT_NO_THROW(parse_json(with_events(parts, taken)));
}

TEST(TracedCollectives, AreNotThoseOfATransport) {
  std::string event = comm("allreduce", 1, 0);
  event.replace(event.find("[\"1\""), 4, "[\"\"");
  EXPECT_FALSE(traced_collective(event));
  EXPECT_FALSE(traced_collective(R"({"name": "aten::mm", "ts": 1})"));
}

class MergedTraceTest : public ::testing::Test {
 protected:
  MergedTraceTest() {
    folder_ = std::filesystem::temp_directory_path() /
              ("titan_merged_trace_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~MergedTraceTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    write_trace(folder_ / name, text);
  }
  std::filesystem::path folder_;
};

TEST_F(MergedTraceTest, HasAProcessPerRankAndArrowsBetweenThem) {
  write("rank0_trace.json.gz",
        trace(0, {comm("all_gather", 3, 10), comm("send to 1", 1, 60, 77, "pp"),
                  R"({"ph": "X", "name": "k", "pid": 0, "tid": 7, "ts": 1})",
                  R"({"ph": "X", "name": "s", "pid": "Spans", "tid": 1, "ts": 1})"}));
  // with a time base 2 microseconds later
  write("rank1_trace.json",
        trace(1,
              {comm("all_gather", 3, 5, 78), comm("receive from 0", 1, 50, 78, "pp"),
               comm("all_gather", 4, 70, 78)},
              78, 3000));
  write("metadata.json", "no trace");
  const std::vector<RankTraceFile> files = find_rank_traces(folder_);
  ASSERT_EQ(files.size(), 2u);
  const MergedTrace merged = merge_traces(files);
  EXPECT_EQ(merged.num_collectives, 2) << "only one rank has number 4";
  const std::vector<Value> from = events_of(merged.text, "s"), to = events_of(merged.text, "f");
  ASSERT_EQ(from.size(), 2u);
  ASSERT_EQ(to.size(), 2u);
  EXPECT_EQ(from[0].at("pid"), Value(1)) << "the first to begin: 5 + 2 before 10";
  EXPECT_EQ(from[0].at("ts").as_number(), 7);
  EXPECT_EQ(to[0].at("pid"), Value(0));
  EXPECT_EQ(from[1].at("pid"), Value(1)) << "the receive was there first";
  EXPECT_EQ(from[1].at("ts").as_number(), 52);
  std::vector<std::string> names;
  for (const Value& event : events_of(merged.text, "X")) {
    EXPECT_LT(event.at("pid").as_integer(), 2);
    if (event.at("pid") == Value(1) && names.size() == 3) {
      EXPECT_EQ(event.at("ts").as_number(), 7) << "of the base of rank 0";
    }
    names.push_back(event.at("name").as_string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"all_gather (fsdp) 3", "send to 1 (pp) 1", "k",
                                             "all_gather (fsdp) 3", "receive from 0 (pp) 1",
                                             "all_gather (fsdp) 4"}));
  EXPECT_NE(merged.text.find("GPU 0 stream 7"), std::string::npos);
}

TEST_F(MergedTraceTest, NamesTheFileThatIsDamaged) {
  write("rank0_trace.json", "{\"traceEvents\": [");
  try {
    merge_traces(find_rank_traces(folder_));
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank0_trace.json"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(find_rank_traces(folder_ / "none"), Error);
}

}  // namespace
}  // namespace titan::commands
