// That text reaches the terminal in one place is seen in the sources.
#include "core/base/terminal.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace titan::core {
namespace {

namespace fs = std::filesystem;

/// False for most lines, which need not go through an expression.
bool may_write(std::string_view line) {
  for (const char* part :
       {"print", "put", "write", "perror", "cout", "cerr", "clog", "FILENO", "borrow"})
    if (line.find(part) != std::string_view::npos) return true;
  return false;
}

TEST(Terminal, IsWrittenToInOnePlace) {
  const std::regex writes(
      R"(\b(f?printf|vf?printf|dprintf|f?puts|puts|putchar|fputc|putc|fwrite|perror)\s*\()"
      R"(|std::(cout|cerr|clog)\b|\bSTD(OUT|ERR)_FILENO\b|\bOutputFile::borrow\()");
  const std::regex asks(
      R"((isatty|ioctl|dup2|posix_spawn_file_actions_add\w+)\(([\w&.\[\]]+, )*STD(OUT|ERR)_FILENO)");
  // a handler of signals may call nothing else; the launcher's Screen takes two descriptors; the
  // logger `console` and its status line write numbers and colours
  const std::set<std::string> allowed = {"core/base/terminal.h",
                                         "core/runtime/signals.cpp",
                                         "core/commands/launch.cpp",
                                         "core/post/main.cpp",  // answers the program that asked
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
        EXPECT_FALSE(may_write(line) &&
                     std::regex_search(std::regex_replace(line, asks, ""), writes))
            << name << ":" << number << ": " << line
            << "\nprint with core/base/terminal.h, or say it with titan/log.h";
    }
  EXPECT_GT(num_files, 300);
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
}  // namespace titan::core
