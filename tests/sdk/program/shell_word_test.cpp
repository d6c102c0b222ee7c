// titan/program/shell_word.h, compared with /bin/sh.

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include <titan/program/shell_word.h>

namespace titan {
namespace {

TEST(ShellWord, IsReadByAShellAsOneWord) {
  EXPECT_EQ(shell_word("a/b-c_1.toml"), "a/b-c_1.toml");
  for (const std::string word :
       {"", "a b", "it's", "$HOME", "a\nb", "*", "~", "\"x\"", "a\\b", "--x=y"}) {
    const std::string command = "printf '%s|' " + shell_word(word) + " end";
    std::FILE* shell = ::popen(command.c_str(), "r");
    ASSERT_TRUE(shell);
    std::string output;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) output += static_cast<char>(c);
    EXPECT_EQ(::pclose(shell), 0);
    EXPECT_EQ(output, word + "|end|") << command;
  }
}

}  // namespace
}  // namespace titan
