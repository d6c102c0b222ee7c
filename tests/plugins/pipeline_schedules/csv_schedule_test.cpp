// Schedules from CSV files: accepted tables, refused ones, and the places in error messages.
#include "plugins/pipeline_schedules/csv/csv_schedule.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <titan/pipelines/table_csv.h>

#include "plugins/pipeline_schedules/csv/csv_table.h"
#include "tests/plugins/error_of.h"

namespace titan::pipeline_schedules {
namespace {

using titan::testing::error_of;

std::string read(const std::string& text) {
  return to_csv(parse_csv_table(text, "table.csv"));
}

std::string refusal(const std::string& text) {
  const Error error = error_of([&] { parse_csv_table(text, "table.csv"); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  return error.message();
}

/// A file that is removed at the end of the test.
class TemporaryTable {
 public:
  explicit TemporaryTable(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("titan_table_" + std::to_string(::getpid()) + ".csv")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryTable() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(CsvSchedule, LeavesOutPausesSpacesAndLineEnds) {
  EXPECT_EQ(read("0F0,0F1,,,0B0,0B1,\r\n, 1F0 ,\t1B0,1F1,1B1\r\n\r\n\n"),
            "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(read("0F0,( 0F1 ; 0B0 ) OVERLAP_F_B,0I1,0W1"), "0F0,(0F1;0B0)OVERLAP_F_B,0I1,0W1\n");
}

TEST(CsvSchedule, NamesLineAndCellOfWhatItCannotRead) {
  const std::string wanted = ": a cell is <stage><F, B, I or W><microbatch>, such as 2F0, got ";
  EXPECT_EQ(refusal("0F0,0B0\n1F0,,F0\n"), "table.csv:2:3" + wanted + "'F0'");
  EXPECT_EQ(refusal("0F0,0f0"), "table.csv:1:2" + wanted + "'0f0'");
  EXPECT_EQ(refusal("0F"), "table.csv:1:1" + wanted + "'0F'");
  EXPECT_EQ(refusal("0"), "table.csv:1:1" + wanted + "'0'");
  EXPECT_EQ(refusal("-1F0"), "table.csv:1:1" + wanted + "'-1F0'");
  EXPECT_EQ(refusal("0F0x"), "table.csv:1:1: 'x' follows the action in '0F0x'");
  EXPECT_EQ(refusal("1000000F0"), "table.csv:1:1: the stage must be <= 999999, got '1000000F0'");
  EXPECT_EQ(refusal("0F99999999999999999999"),
            "table.csv:1:1: the microbatch must be <= 999999, got '0F99999999999999999999'");
}

TEST(CsvSchedule, RefusesCommunication) {
  for (const char* cell :
       {"0SEND_F0", "1RECV_F0", "1SEND_B0", "0RECV_B0", "0UNSHARD", "0RESHARD", "0REDUCE_GRAD"})
    EXPECT_EQ(refusal(std::string("0F0,") + cell),
              std::string("table.csv:1:2: the table holds the communication '") + cell +
                  "'; remove it: communication is derived from the F, B, I and W");
}

TEST(CsvSchedule, RefusesPairsThatAreNone) {
  EXPECT_EQ(refusal("(0F0;0B0)"),
            "table.csv:1:1: a pair is (<F>;<B>)OVERLAP_F_B, such as (0F3;3B1)OVERLAP_F_B, got "
            "'(0F0;0B0)'");
  EXPECT_EQ(refusal("(0F0;0I0)OVERLAP_F_B"),
            "table.csv:1:1: a pair is an F and then a B, got '(0F0;0I0)OVERLAP_F_B'");
  EXPECT_EQ(refusal("(0F0;0B0;0B1)OVERLAP_F_B"),
            "table.csv:1:1: a pair has two actions, got '(0F0;0B0;0B1)OVERLAP_F_B'");
}

TEST(CsvSchedule, RefusesRowsWithoutWork) {
  EXPECT_EQ(refusal(""), "table.csv:1:1: the table is empty; it needs one row for each rank");
  EXPECT_EQ(refusal(" \r\n\n"),
            "table.csv:1:1: the table is empty; it needs one row for each rank");
  EXPECT_EQ(
      refusal("0F0\n,,\n1F0\n"),
      "table.csv:2:1: the row holds no action; the table needs one row for each rank, and each "
      "rank must have actions");
}

TEST(CsvSchedule, CutsAndCleansWhatItShows) {
  const std::string message = refusal("\x1b[31m" + std::string(100, 'x'));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 140u);
}

TEST(CsvSchedule, RunsTheShapeOfItsTableAlone) {
  const TemporaryTable table("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const CsvSchedule schedule({table.path()}, {});
  EXPECT_EQ(schedule.default_num_stages(7), 2);
  EXPECT_EQ(schedule.problem({2, 2, 2}), std::nullopt);
  const std::string as = ", as " + table.path().string() + " has, but there are ";
  EXPECT_EQ(schedule.problem({4, 4, 2}), "needs 2 ranks" + as + "4");
  EXPECT_EQ(schedule.problem({2, 4, 2}), "needs 2 stages" + as + "4");
  EXPECT_EQ(schedule.problem({2, 2, 8}), "needs 2 microbatches" + as + "8");
  EXPECT_EQ(to_csv(schedule.plan({2, 2, 2})), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
}

TEST(CsvSchedule, NeedsAFileThatCanBeRead) {
  EXPECT_EQ(error_of([] { CsvSchedule({}, {}); }).message(),
            "pipeline_schedule 'csv' needs the option 'file': the table to follow");
  const Error error = error_of([] { CsvSchedule({"/nowhere/table.csv"}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_EQ(error.message(),
            "cannot read the pipeline schedule /nowhere/table.csv: No such file or directory");
  EXPECT_EQ(error_of([] { CsvSchedule({"/tmp"}, {}); }).message(),
            "cannot read the pipeline schedule /tmp: it is a folder");
}

}  // namespace
}  // namespace titan::pipeline_schedules
