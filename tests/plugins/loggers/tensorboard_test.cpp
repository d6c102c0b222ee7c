// The event writer against known bytes; tests/referee/tensorboard_referee.py reads its files with
// TensorBoard itself.
#include "plugins/loggers/tensorboard/tensorboard_logger.h"

#include <csignal>
#include <ctime>
#include <regex>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "plugins/loggers/tensorboard/config_text.h"
#include "plugins/loggers/tensorboard/event_proto.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/test_folder.h"

namespace titan::loggers {
namespace {

using titan::testing::error_of;
using titan::testing::holds;
using titan::testing::TestFolder;

namespace fs = std::filesystem;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

/// All files below `folder`, relative to it, in order.
std::vector<std::string> files_below(const fs::path& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.insert(fs::relative(entry.path(), folder).string());
  return {files.begin(), files.end()};
}

/// The event files with scalars among them, and those of HParams sessions.
std::vector<std::string> files_below(const fs::path& folder, bool is_session) {
  std::vector<std::string> files = files_below(folder);
  std::erase_if(files,
                [&](const std::string& name) { return name.ends_with(".session") != is_session; });
  return files;
}

/// The payloads of all records of an event file, with verified checksums.
std::vector<std::string> records_of(const std::string& content) {
  std::vector<std::string> records;
  for (size_t at = 0; at < content.size();) {
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;)
      length = length << 8 | static_cast<unsigned char>(content.at(at + i));
    const std::string payload = content.substr(at + 12, length);
    EXPECT_EQ(frame_record(payload), content.substr(at, length + 16));
    records.push_back(payload);
    at += length + 16;
  }
  return records;
}

/// Limits files of this process to `bytes` during its lifetime.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

TEST(EventFile, HasTheKnownChecksumsAndFrames) {
  const uint32_t sum = 0xE3069283U;  // of "123456789" by the definition of CRC-32C
  EXPECT_EQ(masked_crc32c("123456789"), (sum >> 15 | sum << 17) + 0xA282EAD8U);
  EXPECT_EQ(hex(frame_record(version_event(1.0))),
            "1800000000000000a37f4b22"
            "09000000000000f03f1a0d627261696e2e4576656e743a32"
            "86bf577a");
  const Scalar loss{"loss", 1.5};
  EXPECT_EQ(hex(frame_record(scalars_event(2.0, 1, {&loss, 1}))),
            "1a00000000000000129bd82d"
            "090000000000000040"
            "10012a0d0a0b0a046c6f7373150000c03f"
            "7afd8bf4");
}

TEST(EventFile, SortsBehindAllFilesThatAreThere) {
  TestFolder folder;
  folder.write("events.out.tfevents.5000000000.host.1.0", "from a clock that is ahead");
  folder.write("events.out.tfevents.99999999999999999999.host", "foreign");
  folder.write("events.out.tfevents.x", "foreign");
  const EventFile first(folder.path());
  const EventFile second(folder.path());
  EXPECT_TRUE(first.path().filename().string().starts_with("events.out.tfevents.5000000001."));
  EXPECT_TRUE(second.path().filename().string().starts_with("events.out.tfevents.5000000002."));
  EXPECT_TRUE(second.path().filename().string().ends_with("." + std::to_string(::getpid()) + ".0"));
}

TEST(EventFile, AFailedWriteNamesTheFileAndLeavesItWhole) {
  TestFolder folder;
  EventFile file(folder.path());
  const std::string name = file.path().filename().string();
  file.write(text_event(1, 1, "a", std::string(100, 'x')));
  const std::string before = folder.read(name);
  {
    const FileSizeLimit limit(before.size() + 50);
    const Error error = error_of([&] { file.write(text_event(1, 2, "a", std::string(100, 'x'))); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_TRUE(holds(error.what(),
                      "cannot write to '" + folder.at(name) + "': File too large (errno 27)"));
  }
  EXPECT_EQ(folder.read(name), before);
  file.write(session_start_event(1, 3));  // continues after the last whole record
  EXPECT_EQ(records_of(folder.read(name)).size(), 3U);
}

TEST(EventFile, TellsAFolderThatCannotBe) {
  TestFolder folder;
  folder.write("file", "");
  const Error error = error_of([&] { EventFile file(folder.path() / "file" / "tb"); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(holds(error.what(), folder.at("file/tb") + "': Not a directory (errno 20)"));
}

RunInfo tensorboard_run_in(const TestFolder& folder) {
  RunInfo run;
  run.dump_folder = folder.path();
  run.start_time = 1767225600;
  run.config = Value::map({{"training", Value::map({{"steps", 10}})}});
  return run;
}

void log_one(const RunInfo& run, int64_t step) {
  LoggerContext context;
  context.tensorboard_folder = "events/tb";
  TensorboardLogger logger(context);
  logger.start(run);
  const Scalar scalar{"lr", 0.5};
  logger.log(step, {&scalar, 1});
  logger.finish(RunOutcome::finished);
}

TEST(TensorboardLogger, NamesFolderAndFileAsTorchtitanDoes) {
  TestFolder folder;
  log_one(tensorboard_run_in(folder), 1);
  const std::time_t start = 1767225600;
  std::string minute(32, '\0');
  minute.resize(
      std::strftime(minute.data(), minute.size(), "%Y%m%d-%H%M%S", std::localtime(&start)));
  const auto files = files_below(folder.path(), false);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(std::regex_match(
      files[0],
      std::regex("events/tb/" + minute + R"(/events\.out\.tfevents\.\d{10}\..+\.\d+\.0)")))
      << files[0];
}

TEST(TensorboardLogger, WritesVersionConfigAndScalars) {
  TestFolder folder;
  log_one(tensorboard_run_in(folder), 1);
  const auto records = records_of(folder.read(files_below(folder.path(), false).at(0)));
  ASSERT_EQ(records.size(), 5U);
  EXPECT_TRUE(holds(records[0], "brain.Event:2"));
  EXPECT_TRUE(holds(records[1], "```json\n{\n  \"training\": {\n    \"steps\": 10\n  }\n}\n```"));
  EXPECT_TRUE(holds(records[2], "config/training"));
  EXPECT_TRUE(holds(records[2], "| key | value |\n|---|---|\n| steps | 10 |\n"));
  EXPECT_TRUE(holds(records[3], "custom_scalars__config__"));
  EXPECT_TRUE(holds(records[4], "lr"));
}

TEST(TensorboardLogger, AResumedRunContinuesInTheLatestFolder) {
  TestFolder folder;
  for (const char* name : {"19990101-0000", "20990101-0000", "notes", "99990101_0000"})
    fs::create_directories(folder.path() / "events/tb" / name);
  folder.write("events/tb/99990101-0000", "a file is no run");
  RunInfo run = tensorboard_run_in(folder);
  run.resumed_step = 7;
  log_one(run, 8);
  const auto files = files_below(folder.path() / "events/tb/20990101-0000", false);
  ASSERT_EQ(files.size(), 1U);
  const auto records = records_of(folder.read("events/tb/20990101-0000/" + files[0]));
  ASSERT_EQ(records.size(), 7U);
  for (const size_t i : {1, 2})
    EXPECT_EQ(hex(records[i].substr(9)), "10083a020801");  // step 8, SessionLog {status START}
}

TEST(TensorboardLogger, AFolderHasOneSessionTheLatest) {
  TestFolder folder;
  RunInfo run = tensorboard_run_in(folder);
  log_one(run, 1);
  const auto first = files_below(folder.path(), true);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_LT(first[0], files_below(folder.path(), false).at(0)) << "readers see it first";
  run.resumed_step = 1;
  run.config = Value::map(
      {{"training", Value::map({{"steps", 20}})}, {"job", Value::map({{"dump_folder", "x"}})}});
  log_one(run, 2);
  const auto second = files_below(folder.path(), true);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_NE(second, first);
  const auto records = records_of(folder.read(second[0]));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_TRUE(holds(records[1], "_hparams_/session_start_info"));
  EXPECT_TRUE(holds(records[1], "training.steps"));
  EXPECT_EQ(records[1].find("dump_folder"), std::string::npos)
      << "it does not change how a run learns";
  EXPECT_TRUE(holds(records[2], "_hparams_/session_end_info"));
}

TEST(ConfigText, LeavesNothingForMarkdownToActOn) {
  const auto tables = config_as_tables(
      Value::map({{"job", Value::map({{"description", "a|b <i>`*_"}, {"none", Value()}})},
                  {"empty", Value::map()}}));
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].second,
            "| key | value |\n|---|---|\n"
            "| description | &#34;a&#124;b &#60;i&#62;&#96;&#42;&#95;&#34; |\n| none | null |\n");
}

TEST(TensorboardLogger, EachRankHasAFolderWhenAllWrite) {
  TestFolder folder;
  RunInfo run = tensorboard_run_in(folder);
  run.rank = 3;
  run.config = Value::map({{"metrics", Value::map({{"save_for_all_ranks", true}})}});
  log_one(run, 1);
  run.resumed_step = 1;
  log_one(run, 2);
  const auto files = files_below(folder.path(), false);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(fs::path(files[0]).parent_path().filename(), "rank_3");
  EXPECT_EQ(fs::path(files[0]).parent_path(), fs::path(files[1]).parent_path());
}

TEST(TensorboardLogger, ASecondStartInTheSameSecondHasAFolderOfItsOwn) {
  TestFolder folder;
  log_one(tensorboard_run_in(folder), 1);
  log_one(tensorboard_run_in(folder), 1);
  const auto files = files_below(folder.path(), false);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_NE(fs::path(files[0]).parent_path(), fs::path(files[1]).parent_path());
}

}  // namespace
}  // namespace titan::loggers
