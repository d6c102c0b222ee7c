#include "plugins/commands/launch/rank_output.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace titan::launching {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void put(const Descriptor& end, std::string_view text) {
  ASSERT_EQ(::write(end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

/// A rank whose output the test writes, and a screen that writes to two files.
class RankOutputTest : public ::testing::Test {
 protected:
  ~RankOutputTest() override { fs::remove_all(folder_); }

  std::unique_ptr<RankOutput> rank(std::optional<std::string> prefix, int attempt = 0) {
    auto output = std::make_unique<RankOutput>(log(), attempt, screen_, std::move(prefix));
    PipeEnds out = make_pipe(), err = make_pipe();
    for (const Descriptor* end : {&out.read_end, &err.read_end})
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    output->attach(std::move(out.read_end), std::move(err.read_end));
    out_ = std::move(out.write_end), err_ = std::move(err.write_end);
    return output;
  }

  fs::path log() const { return folder_ / "rank3.log"; }
  std::string shown(const char* file) {
    while (screen_.output.has_waiting()) screen_.output.write_some();
    while (screen_.errors.has_waiting()) screen_.errors.write_some();
    return contents(folder_ / file);
  }

  static fs::path make_folder() {
    char name[] = "/tmp/titan_rank_output_XXXXXX";
    return ::mkdtemp(name);
  }
  Descriptor open_screen(const char* file) const {
    return Descriptor(::open((folder_ / file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  }

  const fs::path folder_ = make_folder();
  const Descriptor screen_output_ = open_screen("out"), screen_errors_ = open_screen("err");
  Screen screen_{screen_output_.get(), screen_errors_.get()};
  Descriptor out_, err_;  ///< the rank's ends of the pipes
};

TEST_F(RankOutputTest, LogsBothStreamsAndShowsEachOnItsOwn) {
  const auto output = rank("");
  put(out_, "a line\n");
  put(err_, "error: a complaint\n");
  output->read_output();
  output->read_errors();
  EXPECT_EQ(contents(log()), "a line\nerror: a complaint\n");
  EXPECT_EQ(shown("out"), "a line\n");
  EXPECT_EQ(shown("err"), "error: a complaint\n");
}

TEST_F(RankOutputTest, PrefixesEveryLineOfSeveralShownRanks) {
  const auto output = rank("[rank3]: ");
  put(out_, "one\n\nthree\n");
  output->read_output();
  EXPECT_EQ(shown("out"), "[rank3]: one\n[rank3]: \n[rank3]: three\n");
  EXPECT_EQ(contents(log()), "one\n\nthree\n");
}

TEST_F(RankOutputTest, ShowsNothingOfOtherRanks) {
  const auto output = rank(std::nullopt);
  put(out_, "a line\n");
  output->read_output();
  EXPECT_FALSE(output->is_shown());
  EXPECT_EQ(shown("out"), "");
  EXPECT_EQ(contents(log()), "a line\n");
}

TEST_F(RankOutputTest, WaitsForTheEndOfALine) {
  const auto output = rank("");
  put(out_, "half");
  output->read_output();
  EXPECT_EQ(contents(log()), "");
  put(err_, "between\n");
  output->read_errors();
  put(out_, " whole\nlast words");
  output->read_output();
  EXPECT_EQ(contents(log()), "between\nhalf whole\n");
  output->finish();
  EXPECT_EQ(contents(log()), "between\nhalf whole\nlast words\n");
}

TEST_F(RankOutputTest, TakesWhatIsLeftAtTheEndWithoutWaitingForOthers) {
  const auto output = rank("");
  put(out_, "one\ntwo");
  output->finish();  // the write ends are still open, as in a child of the rank
  EXPECT_EQ(contents(log()), "one\ntwo\n");
  EXPECT_EQ(output->output_to_poll(), -1);
  EXPECT_EQ(output->errors_to_poll(), -1);
}

TEST_F(RankOutputTest, KeepsTheLastLinesForAReport) {
  const auto output = rank(std::nullopt);
  for (int i = 0; i < 40; ++i) put(out_, "line " + std::to_string(i) + "\n");
  put(out_, std::string(5000, 'x') + "\n");
  output->read_output();
  ASSERT_EQ(output->last_lines().size(), RankOutput::kNumLinesKept);
  EXPECT_EQ(output->last_lines().front(), "line 26");
  EXPECT_EQ(output->last_lines().back(), std::string(1000, 'x'));
  EXPECT_EQ(contents(log()).size(), 10 * 7 + 30 * 8 + 5001u) << "the log has everything";
}

TEST_F(RankOutputTest, TakesTheLastErrorForTheLastWords) {
  const auto output = rank(std::nullopt);
  EXPECT_EQ(output->last_words(), "");
  put(out_, "working\n\n");
  output->read_output();
  EXPECT_EQ(output->last_words(), "working");
  put(err_, "error: first\nerror: the file is gone\n  while reading it\n");
  output->read_errors();
  EXPECT_EQ(output->last_words(), "error: the file is gone");
}

TEST_F(RankOutputTest, BreaksALineWithoutEnd) {
  const auto output = rank(std::nullopt);
  const std::string piece(4096, 'x');
  for (int i = 0; i < 300; ++i) {
    put(out_, piece);
    output->read_output();
  }
  const auto size = fs::file_size(log());
  EXPECT_GT(size, 1u << 20);
  EXPECT_LT(size, (1u << 20) + 2 * 65536);
}

TEST_F(RankOutputTest, IsNotReadWhileTheScreenIsFull) {
  const auto output = rank("");
  EXPECT_NE(output->output_to_poll(), -1);
  screen_.output.add(std::string(2 << 20, 'x'));
  EXPECT_EQ(output->output_to_poll(), -1);
  EXPECT_NE(output->errors_to_poll(), -1) << "the other stream stays open";
  shown("out");
  EXPECT_NE(output->output_to_poll(), -1);
}

TEST_F(RankOutputTest, AppendsAfterARestart) {
  rank("")->finish();
  auto output = rank("");
  put(out_, "first\n");
  output->finish();
  output = rank("", 1);
  put(out_, "second\n");
  output->finish();
  EXPECT_EQ(contents(log()), "first\n--- restart 1\nsecond\n");
}

TEST_F(RankOutputTest, SaysThatALogCannotBeWritten) {
  try {
    RankOutput(folder_ / "none" / "rank0.log", 0, screen_, std::nullopt);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    EXPECT_THAT(e.what(), HasSubstr("rank0.log': No such file or directory"));
  }
  RankOutput full("/dev/full", 1, screen_, std::nullopt);
  EXPECT_THAT(shown("err"), HasSubstr("cannot write to '/dev/full': No space left on device"));
}

TEST(Screen, DropsWhatNobodyReads) {
  PipeEnds pipe = make_pipe();
  ScreenStream stream(pipe.write_end.get());
  stream.add("lost");
  pipe.read_end.close();
  const auto old = ::signal(SIGPIPE, SIG_IGN);  // like the program
  stream.write_some();
  ::signal(SIGPIPE, old);
  EXPECT_FALSE(stream.has_waiting());
  stream.add("lost too");
  EXPECT_FALSE(stream.has_waiting());
}

}  // namespace
}  // namespace titan::launching
