#include "plugins/commands/launch/rank_group.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <titan/program/child.h>

namespace titan::launching {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs shell scripts as ranks, which use $RANK.
class RankGroupTest : public ::testing::Test {
 protected:
  RankGroupTest() {
    char name[] = "/tmp/titan_rank_group_XXXXXX";
    folder_ = ::mkdtemp(name);
    plan_.program = "/bin/sh";
    plan_.log_dir = folder_;
    plan_.ranks_here = 3;
    plan_.shown_ranks = {0};
    plan_.notice = std::chrono::milliseconds(50);
    plan_.grace = std::chrono::milliseconds(50);
    for (const char* file : {"out", "err"})
      screen_files_.emplace_back(
          ::open((folder_ / file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  }
  ~RankGroupTest() override { fs::remove_all(folder_); }

  GroupEnd run(const std::string& script) {
    plan_.arguments = {"-c", "cd " + folder_.string() + "\n" + script};
    SignalInbox signals;
    Screen screen(screen_files_[0].get(), screen_files_[1].get());
    const GroupEnd end = RankGroup(plan_, Environment::of_process(), 0, screen, signals).run();
    while (signals.next()) {
    }
    screen.flush(signals.descriptor());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
    return end;
  }

  /// Named pipes through which ranks wait for each other, in their working folder.
  void make_pipes(const std::vector<std::string>& names) {
    for (const std::string& name : names) ASSERT_EQ(::mkfifo((folder_ / name).c_str(), 0600), 0);
  }

  std::string contents(const char* file) const {
    std::ifstream in(folder_ / file, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  }

  fs::path folder_;
  LaunchPlan plan_;
  std::vector<Descriptor> screen_files_;
};

TEST_F(RankGroupTest, EndsWellWhenEveryRankDoes) {
  const GroupEnd end = run("echo rank $RANK of $WORLD_SIZE");
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_FALSE(end.has_failed);
  EXPECT_FALSE(end.was_stopped);
  EXPECT_EQ(contents("out"), "rank 0 of 3\n");
  EXPECT_EQ(contents("rank2.log"), "rank 2 of 3\n");
  EXPECT_EQ(contents("err"), "");
}

TEST_F(RankGroupTest, NamesTheFirstFailureAndEndsTheOthers) {
  const GroupEnd end =
      run("[ $RANK = 1 ] || exec sleep 1000; echo before; echo 'error: no data' >&2; exit 7");
  EXPECT_TRUE(end.has_failed);
  EXPECT_EQ(end.exit_code, 7);
  EXPECT_THAT(end.failure, AllOf(HasSubstr("rank 1 (pid "),
                                 HasSubstr("ended with exit code 7: error: no data")));
  EXPECT_THAT(contents("err"),
              AllOf(HasSubstr("error: rank 1 (pid "), HasSubstr("\n    error: no data\n"),
                    HasSubstr("without an error of their own: 0, 2")));
}

TEST_F(RankGroupTest, KillsWhoDoesNotHear) {
  const GroupEnd end =
      run("trap '' TERM; [ $RANK = 0 ] && kill -9 $$; while :; do sleep 1000; done");
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
  EXPECT_THAT(end.failure, HasSubstr("rank 0 (pid "));
  EXPECT_THAT(end.failure, HasSubstr("was ended by signal 9 (SIGKILL)"));
}

TEST_F(RankGroupTest, LetsTheOthersReportWhatTheySaw) {
  plan_.notice = std::chrono::minutes(5);
  make_pipes({"to0", "to2"});
  const GroupEnd end =
      run("[ $RANK = 1 ] && exec 3>to0 4>to2 && kill -9 $$\n"
          "cat to$RANK; echo error: rank $RANK lost a peer; exit 1");  // cat ends when rank 1 ends
  EXPECT_EQ(end.exit_code, 128 + SIGKILL) << "a signal is the cause, in any order of the ranks";
  EXPECT_THAT(contents("err"), HasSubstr("rank 2 ended with exit code 1: error: rank 2 lost a"));
}

TEST_F(RankGroupTest, BlamesWhoWroteItsErrorFirst) {
  plan_.same_moment = std::chrono::minutes(5);
  make_pipes({"to0", "to2", "from0", "from2"});
  const GroupEnd end = run(R"(
      if [ $RANK = 1 ]; then
        echo '{"message": "rank 1 is the cause"}' > $TORCHELASTIC_ERROR_FILE
        touch -d '1 minute ago' $TORCHELASTIC_ERROR_FILE
        exec 5<from0 6<from2 3>to0 4>to2 3>&- 4>&-
        cat <&5; cat <&6; exit 1   # once both others have ended
      fi
      exec 3>from$RANK
      cat to$RANK
      echo '{"message": "lost a peer"}' > $TORCHELASTIC_ERROR_FILE
      exit 1)");
  EXPECT_THAT(end.failure, HasSubstr("exit code 1: error: rank 1 is the cause"));
}

TEST_F(RankGroupTest, PrefersTheErrorFileToTheLog) {
  run("[ $RANK = 2 ] || exit 0\n"
      "echo '{\"message\": {\"message\": \"from the file\"}}' > $TORCHELASTIC_ERROR_FILE; exit 1");
  const GroupEnd end = run("[ $RANK = 2 ] || exit 0; echo error: from the log; exit 1");
  EXPECT_THAT(end.failure, HasSubstr("error: from the log"))
      << "the error file of an earlier run is ignored";
  EXPECT_THAT(contents("err"), Not(HasSubstr("told to end")));
}

TEST_F(RankGroupTest, ShowsNothingThatATerminalActsOn) {
  const GroupEnd end = run(R"(
      [ $RANK = 0 ] && exit 0
      printf '{"message": "in \\u009b\\u202ethe file"}' > $TORCHELASTIC_ERROR_FILE
      printf 'error: \033[2J\342\200\256\377\n'; exit 1)");
  EXPECT_TRUE(end.has_failed);
  EXPECT_THAT(
      contents("err"),
      AllOf(HasSubstr(R"(    error: \x1b[2J\u202e\xff)"), HasSubstr(R"(in \u009b\u202ethe file)"),
            Not(HasSubstr("\033")), Not(HasSubstr("\u202e")), Not(HasSubstr("\u009b"))));
}

TEST_F(RankGroupTest, TakesAStopForRequeueForNoFailure) {
  const GroupEnd end = run("exit 75");
  EXPECT_EQ(end.exit_code, 75);
  EXPECT_FALSE(end.has_failed);
  EXPECT_TRUE(end.was_stopped);
}

TEST_F(RankGroupTest, EndsWhatARankLeavesBehind) {
  run("sleep 1000 & echo $! > child$RANK; exit 0");
  for (const char* file : {"child0", "child1", "child2"}) {
    const std::string pid = contents(file);
    ASSERT_FALSE(pid.empty());
    // it may not have exited yet, but it has been killed
    std::ifstream status("/proc/" + std::to_string(std::stoi(pid)) + "/stat");
    std::string text((std::istreambuf_iterator<char>(status)), {});
    EXPECT_TRUE(text.empty() || text.find(") Z") != std::string::npos ||
                text.find(") X") != std::string::npos || text.find(") R") != std::string::npos)
        << text;
  }
}

TEST_F(RankGroupTest, StartsNoRankWhenTheProgramCannotRun) {
  plan_.program = (folder_ / "broken").string();
  std::ofstream(plan_.program) << "#!/nowhere/interpreter\n";
  fs::permissions(plan_.program, fs::perms::owner_all);
  try {
    run("");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("cannot run '"), HasSubstr("broken': No such file")));
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
}

TEST(Child, IsDescribedByItsEnd) {
  EXPECT_EQ(how_it_ended(3 << 8), "ended with exit code 3");
  EXPECT_EQ(how_it_ended(SIGSEGV), "was ended by signal 11 (SIGSEGV)");
  EXPECT_EQ(exit_code_of(SIGTERM), 143);
  EXPECT_EQ(exit_code_of(2 << 8), 2);
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
}

}  // namespace
}  // namespace titan::launching
