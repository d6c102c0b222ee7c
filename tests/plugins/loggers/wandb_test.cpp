// The wandb logger against known bytes and records; tests/referee/wandb_check.py reads and uploads
// its files with wandb itself.
#include "plugins/loggers/wandb/wandb_logger.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <regex>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

namespace fs = std::filesystem;

/// Sets environment variables during its lifetime, and unsets all others that the logger reads.
class WandbVariables {
 public:
  explicit WandbVariables(
      std::initializer_list<std::pair<const char*, const char*>> variables = {}) {
    for (const char* name :
         {"WANDB_MODE", "WANDB_PROJECT", "WANDB_TEAM", "WANDB_ENTITY", "WANDB_RUN_NAME",
          "WANDB_NAME", "WANDB_RUN_ID", "WANDB_RUN_NOTES", "WANDB_NOTES", "WANDB_RUN_TAGS",
          "WANDB_TAGS", "WANDB_RUN_GROUP", "WANDB_RUN_JOB_TYPE", "WANDB_JOB_TYPE", "WANDB_DIR",
          "WANDB_RESUME_FROM", "WANDB_FORK_FROM"}) {
      if (const char* value = std::getenv(name))
        old_[name] = value;
      else
        old_[name] = std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  ~WandbVariables() {
    for (const auto& [name, value] : old_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> old_;
};

/// Reads a message field by field. Returns the text of its fields in order, with numbers as
/// decimals.
std::vector<std::pair<int, std::string>> fields_of(std::string_view message) {
  std::vector<std::pair<int, std::string>> fields;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const uint64_t key = varint();
    if ((key & 7) == 0) {
      fields.emplace_back(key >> 3, std::to_string(varint()));
    } else {
      const size_t size = varint();
      fields.emplace_back(key >> 3, message.substr(0, size));
      message.remove_prefix(size);
    }
  }
  return fields;
}

std::string field_of(std::string_view message, int number) {
  for (const auto& [field, content] : fields_of(message))
    if (field == number) return content;
  return {};
}

/// key -> JSON of the items (field 1) of a history or summary.
std::map<std::string, std::string> items_of(std::string_view message) {
  std::map<std::string, std::string> items;
  for (const auto& [field, content] : fields_of(message))
    if (field == 1) items[field_of(content, 2)] = field_of(content, 16);
  return items;
}

/// The records of a .wandb file: the number of each record's field, and its content.
std::vector<std::pair<int, std::string>> wandb_records(const std::string& bytes) {
  EXPECT_EQ(bytes.substr(0, 7), std::string("\x3aW&B\xe1\xbe\x00", 7));
  std::vector<std::pair<int, std::string>> records;
  std::string payload;
  for (size_t at = 7; at < bytes.size();) {
    const size_t left = 32768 - at % 32768;
    if (left < 7) {
      at += left;
      continue;
    }
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes.at(at + i)); };
    const size_t length = byte(4) + 256U * byte(5);
    payload += bytes.substr(at + 7, length);
    if (byte(6) == 1 || byte(6) == 4) {
      const auto fields = fields_of(payload);
      EXPECT_EQ(fields.at(0),
                std::pair(1, std::to_string(records.size() + 1)));  // records are numbered
      records.push_back(fields.at(1));
      payload.clear();
    }
    at += 7 + length;
  }
  EXPECT_EQ(payload, "");
  return records;
}

constexpr int kHistory = 2, kSummary = 3, kRun = 17, kExit = 18;

/// The contents of the records that hold `field`.
std::vector<std::string> of_kind(const std::vector<std::pair<int, std::string>>& records,
                                 int field) {
  std::vector<std::string> contents;
  for (const auto& [kind, content] : records)
    if (kind == field) contents.push_back(content);
  return contents;
}

std::vector<fs::path> wandb_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".wandb") files.push_back(fs::relative(entry.path(), folder));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> steps_of(const std::vector<std::pair<int, std::string>>& records) {
  std::vector<std::string> steps;
  for (const std::string& row : of_kind(records, kHistory)) steps.push_back(items_of(row)["_step"]);
  return steps;
}

RunInfo wandb_run_in(const TestFolder& folder, int64_t resumed_step = 0) {
  RunInfo run;
  run.dump_folder = folder.path();
  run.description = "a test";
  run.start_time = 1767225600.5 + static_cast<double>(resumed_step);
  run.resumed_step = resumed_step;
  run.config = Value::map({{"training", Value::map({{"steps", 10}})}});
  return run;
}

void log_steps(WandbLogger& logger, int64_t from, int64_t to) {
  for (int64_t step = from; step <= to; ++step) {
    const Scalar loss{"loss", 1.0 / static_cast<double>(step)};
    logger.log(step, {&loss, 1});
  }
}

TEST(WandbFile, FramesRecordsAsLevelDbDoes) {
  const std::string framed = frame_wandb_record("123456789", 7);
  // CRC-32 of "\1" "123456789"; zlib computes 0x21b52ec0
  EXPECT_EQ(framed, std::string("\xc0\x2e\xb5\x21\x09\x00\x01", 7) + "123456789");
}

TEST(WandbFile, CutsRecordsAtTheBoundsOfBlocks) {
  const std::string payload(70000, 'x');
  const std::string framed = frame_wandb_record(payload, 32768 - 3);  // no room for a header
  EXPECT_EQ(framed.substr(0, 3), std::string(3, '\0'));
  const auto type_at = [&](size_t block) { return int{framed.at(3 + block * 32768 + 6)}; };
  EXPECT_EQ(type_at(0), 2);
  EXPECT_EQ(type_at(1), 3);
  EXPECT_EQ(type_at(2), 4);
  EXPECT_EQ(framed.size(), 3 + 3 * 7 + payload.size());
  const std::string exact = frame_wandb_record(std::string(32768 - 7, 'x'), 32768);
  EXPECT_EQ(exact.size(), 32768U);
  EXPECT_EQ(int{exact[6]}, 1);
  const std::string header = frame_wandb_record("x", 32768 - 7);  // just enough room for a header
  EXPECT_EQ(header.substr(4, 3), std::string("\0\0\2", 3));
  EXPECT_EQ(header.size(), 7U + 7 + 1);
}

TEST(WandbSettings, TorchtitansVariablesComeBeforeWandbsOwn) {
  const WandbVariables variables({{"WANDB_TEAM", "team"},
                                  {"WANDB_ENTITY", "entity"},
                                  {"WANDB_NAME", "name"},
                                  {"WANDB_RUN_TAGS", "a, b,,c"},
                                  {"WANDB_RUN_JOB_TYPE", "train"},
                                  {"WANDB_FORK_FROM", "x?_step=1"}});
  const WandbSettings settings = wandb_settings({});
  EXPECT_EQ(settings.team, "team");
  EXPECT_EQ(settings.name, "name");
  EXPECT_EQ(settings.project, "torchtitan");
  EXPECT_EQ(settings.tags, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(settings.job_type, "train");
  EXPECT_EQ(settings.without_effect, std::vector<std::string>{"WANDB_FORK_FROM"});
}

TEST(WandbSettings, OptionsComeBeforeTheEnvironment) {
  const WandbVariables variables(
      {{"WANDB_MODE", "disabled"}, {"WANDB_PROJECT", "p"}, {"WANDB_TAGS", "a"}});
  const WandbSettings settings =
      wandb_settings({.mode = WandbMode::offline, .project = "mine", .tags = {"b"}});
  EXPECT_FALSE(settings.is_disabled);
  EXPECT_EQ(settings.project, "mine");
  EXPECT_EQ(settings.tags, std::vector<std::string>{"b"});
  EXPECT_TRUE(wandb_settings({}).is_disabled);
}

TEST(WandbSettings, AModeAndAnIdThatCannotBeAreRefused) {
  const WandbVariables variables({{"WANDB_MODE", "onlin"}});
  EXPECT_TRUE(holds(error_of([] { wandb_settings({}); }).what(), "got 'onlin'"));
  const Error error =
      error_of([] { wandb_settings({.mode = WandbMode::offline, .run_id = "../x"}); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(), "run id '../x' cannot be part of a file name"));
}

TEST(WandbLogger, WritesRunHistorySummaryAndExit) {
  const WandbVariables variables({{"WANDB_RUN_ID", "abc"}, {"WANDB_RUN_TAGS", "a,b"}});
  TestFolder folder;
  WandbLogger logger({}, {});
  logger.start(wandb_run_in(folder));
  const std::vector<Scalar> scalars = {
      {"loss", 0.5}, {"norm", std::nan("")}, {"inf", -std::numeric_limits<double>::infinity()}};
  logger.log(1, scalars);
  const Scalar validation{"validation/loss", 1.5};
  logger.log(1, {&validation, 1});
  const Histogram histogram{"weights", {0, 0.5, 1}, {3, 4}};
  logger.log_histograms(1, {&histogram, 1});
  log_steps(logger, 10, 10);
  logger.finish(RunOutcome::stopped);

  const auto files = wandb_files(folder.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(std::regex_match(files[0].string(),
                               std::regex(R"(wandb/offline-run-\d{8}_\d{6}-abc/run-abc\.wandb)")))
      << files[0];
  const auto records = wandb_records(folder.read(files[0].string()));
  ASSERT_EQ(records.front().first, kRun);
  const std::string& run = records.front().second;
  EXPECT_EQ(field_of(run, 1), "abc");
  EXPECT_EQ(field_of(run, 3), "torchtitan");
  EXPECT_EQ(field_of(run, 9), "a test");
  EXPECT_EQ(field_of(run, 10), "a");
  EXPECT_EQ(field_of(field_of(run, 17), 1), "1767225600");
  EXPECT_EQ(field_of(run, 24), "") << "nothing was before it";
  const std::string config = field_of(field_of(run, 4), 1);
  EXPECT_EQ(field_of(config, 1), "training");
  EXPECT_EQ(field_of(config, 16), R"({"steps":10})");

  const auto rows = of_kind(records, kHistory);
  ASSERT_EQ(rows.size(), 2U) << "all of a step is one row";
  auto items = items_of(rows[0]);
  EXPECT_EQ(items["_step"], "1");
  EXPECT_EQ(items["loss"], "0.5");
  EXPECT_EQ(items["norm"], "NaN");
  EXPECT_EQ(items["inf"], "-Infinity");
  EXPECT_EQ(items["validation/loss"], "1.5");
  EXPECT_EQ(items["weights"], R"({"_type":"histogram","bins":[0.0,0.5,1.0],"values":[3.0,4.0]})");
  EXPECT_GT(std::stod(items["_timestamp"]), 1.7e9);
  EXPECT_EQ(field_of(field_of(rows[1], 2), 1), "10");

  std::map<std::string, std::string> last;
  for (const std::string& summary : of_kind(records, kSummary))
    for (const auto& [key, value] : items_of(summary)) last[key] = value;
  EXPECT_EQ(last["loss"], "0.1");
  EXPECT_EQ(last["validation/loss"], "1.5");
  EXPECT_EQ(last["_step"], "10");
  ASSERT_EQ(records.back().first, kExit);
  EXPECT_EQ(field_of(records.back().second, 1), "0");
}

TEST(WandbLogger, AFailedRunSaysSo) {
  const WandbVariables variables;
  TestFolder folder;
  WandbLogger logger({}, {});
  logger.start(wandb_run_in(folder));
  logger.finish(RunOutcome::failed);
  const auto records = wandb_records(folder.read(wandb_files(folder.path()).at(0).string()));
  EXPECT_EQ(field_of(records.back().second, 1), "1");
}

TEST(WandbLogger, AResumedRunKeepsItsIdAndTheRowsOfBefore) {
  const WandbVariables variables;
  TestFolder folder;
  {
    WandbLogger killed({}, {});
    killed.start(wandb_run_in(folder));
    log_steps(killed, 1, 8);  // the row of step 8 is still incomplete, and is lost
  }
  WandbLogger resumed({}, {});
  resumed.start(wandb_run_in(folder, 5));
  log_steps(resumed, 6, 10);
  resumed.finish(RunOutcome::finished);

  const auto files = wandb_files(folder.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].filename(), files[1].filename());
  const auto first = wandb_records(folder.read(files[0].string()));
  const auto second = wandb_records(folder.read(files[1].string()));
  EXPECT_EQ(steps_of(first), (std::vector<std::string>{"1", "2", "3", "4", "5", "6", "7"}));
  EXPECT_EQ(steps_of(second), (std::vector<std::string>{"8", "9", "10"}));
  EXPECT_EQ(field_of(second.front().second, 24), "1") << "new rows follow the existing ones";
}

TEST(WandbLogger, AFreshRunInTheSameFolderIsAnother) {
  const WandbVariables variables;
  TestFolder folder;
  for (int i = 0; i < 2; ++i) {
    WandbLogger logger({}, {});
    logger.start(wandb_run_in(folder));
    log_steps(logger, 1, 2);
    logger.finish(RunOutcome::finished);
  }
  const auto files = wandb_files(folder.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_NE(files[0].filename(), files[1].filename());
  for (const fs::path& file : files)
    EXPECT_EQ(steps_of(wandb_records(folder.read(file.string()))).size(), 2U);
}

TEST(WandbLogger, TwoStartsWithinASecondHaveTwoFolders) {
  const WandbVariables variables({{"WANDB_RUN_ID", "abc"}});
  TestFolder folder;
  WandbLogger first({}, {}), second({}, {});
  first.start(wandb_run_in(folder));
  second.start(wandb_run_in(folder));
  EXPECT_EQ(wandb_files(folder.path()).size(), 2U);
}

TEST(WandbLogger, EachRankHasARunWhenAllWrite) {
  const WandbVariables variables({{"WANDB_RUN_ID", "abc"}, {"WANDB_RUN_NAME", "big"}});
  TestFolder folder;
  RunInfo run = wandb_run_in(folder);
  run.rank = 3;
  run.config = Value::map({{"metrics", Value::map({{"save_for_all_ranks", true}})}});
  WandbLogger logger({}, {});
  logger.start(run);
  const auto files = wandb_files(folder.path());
  EXPECT_EQ(files.at(0).filename(), "run-abc-rank_3.wandb");
  const auto records = wandb_records(folder.read(files[0].string()));
  EXPECT_EQ(field_of(records[0].second, 8), "big rank_3");
}

TEST(WandbLogger, WritesNothingWhereItIsDisabled) {
  const WandbVariables variables({{"WANDB_MODE", "disabled"}});
  TestFolder folder;
  WandbLogger logger({}, {});
  logger.start(wandb_run_in(folder));
  log_steps(logger, 1, 3);
  logger.finish(RunOutcome::finished);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(WandbLogger, AFullDiskIsAnErrorAndWhatIsThereStaysWhole) {
  const WandbVariables variables({{"WANDB_RUN_ID", "abc"}});
  TestFolder folder;
  WandbLogger logger({}, {});
  logger.start(wandb_run_in(folder));
  log_steps(logger, 1, 2);
  const std::string file = wandb_files(folder.path()).at(0).string();
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit limit{folder.read(file).size() + 20, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Error error = error_of([&] { log_steps(logger, 3, 3); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), "run-abc.wandb': File too large"));
  logger.finish(RunOutcome::failed);
  EXPECT_EQ(steps_of(wandb_records(folder.read(file))), std::vector<std::string>{"1"});
}

TEST(WandbLogger, AForeignFileOfItsNameIsAnError) {
  const WandbVariables variables;
  TestFolder folder;
  folder.write("wandb/titan_run.json", "[1]");
  WandbLogger logger({}, {});
  const Error error = error_of([&] { logger.start(wandb_run_in(folder, 5)); });
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_TRUE(holds(error.what(), folder.at("wandb/titan_run.json")));
}

}  // namespace
}  // namespace titan::loggers
