// Only one place in the sources may write to the terminal.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/program/terminal.h>

namespace titan {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

std::string one_of(const Words& words) {
  std::string pattern;
  for (const std::string& word : words) pattern += (pattern.empty() ? "(" : "|") + word;
  return pattern + ")";
}

bool has_one_of(const Words& words, const std::string& line) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return line.find(word) != std::string::npos; });
}

TEST(Terminal, IsWrittenToInOnePlace) {
  const Words calls = {"printf", "fprintf", "vprintf",           "vfprintf", "dprintf",
                       "fputs",  "puts",    "putchar",           "fputc",    "putc",
                       "fwrite", "perror",  "OutputFile::borrow"};
  const Words names = {"std::cout", "std::cerr", "std::clog", "STDOUT_FILENO", "STDERR_FILENO"};
  const std::regex writes("\\b" + one_of(calls) + "\\s*\\(|" + one_of(names) + "\\b");
  const std::regex asks(
      R"((isatty|ioctl|dup2|posix_spawn_file_actions_add\w+)\(([\w&.\[\]]+, )*STD(OUT|ERR)_FILENO)");
  // exceptions: signal handlers may not call anything else; the launcher's Screen writes to two
  // descriptors; the logger `console` and its status line write numbers and colors
  const std::set<std::string> allowed = {
      "sdk/include/titan/program/terminal.h",
      "sdk/src/program/stop_signals.cpp",
      "plugins/commands/launch/plugin.cpp",
      "plugins/loggers/mlflow/post/main.cpp",  // answers the program that started it
      "plugins/parallelism/replicas/membership/agent/main.cpp",     // the same
      "plugins/parallelism/replicas/membership/agent_process.cpp",  // starts it
      "plugins/loggers/console/console_logger.h",
      "plugins/loggers/console/console_logger.cpp",
      "plugins/loggers/common/output_file.h",
      "sdk/src/base/status_line.cpp"};
  const fs::path root = TITAN_SOURCE_DIR;
  int num_files = 0;
  for (const char* room : {"core", "sdk/src", "sdk/include", "plugins"})
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      ++num_files;
      const std::string name = entry.path().lexically_relative(root);
      if (allowed.contains(name)) continue;
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number)
        // a plain search first: std::regex is slow, and few lines contain any of the words
        EXPECT_FALSE((has_one_of(calls, line) || has_one_of(names, line)) &&
                     std::regex_search(std::regex_replace(line, asks, ""), writes))
            << name << ":" << number << ": " << line
            << "\nprint with titan/program/terminal.h, or say it with titan/log.h";
    }
  EXPECT_GT(num_files, 300);
}

/// The bytes in a pipe that is both standard output and standard error of a program that prints to
/// each in turn.
std::string printed_to_one_pipe(int rounds) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::setvbuf(stdout, nullptr, _IOFBF, 64);  // buffered as for a pipe, with a small buffer
    print_whole_lines();
    for (int round = 0; round < rounds; ++round) {
      print("a result of some length\n");
      print_to_errors("a warning\n");
    }
    std::fflush(stdout);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, size);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text;
}

TEST(Terminal, LinesThatShareAPipeStayWholeAndInOrder) {
  std::string expected;
  for (int round = 0; round < 20; ++round) expected += "a result of some length\na warning\n";
  EXPECT_EQ(printed_to_one_pipe(20), expected);
}

TEST(Terminal, GetsNothingItWouldActOn) {
  ::testing::internal::CaptureStdout();
  print("a\x1b[2J\u202e\n");
  print_json("{\"a\u202e\": 1}\n");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "a\\x1b[2J\\u202e\n{\"a\\u202e\": 1}\n");
  ::testing::internal::CaptureStderr();
  print_error("no file 'a\nerror: b\u009b'");
  print_to_errors("x\r\n");
  redraw_line("50 %\n\x1b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "error: no file 'a\n  error: b\\u009b'\nx\\x0d\n\r50 %\\x0a\\x1b\033[K");
}

}  // namespace
}  // namespace titan
