#include "plugins/commands/submit/submission.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include <titan/error.h>

#include "plugins/commands/common/shell_text.h"

namespace titan::commands {
namespace {

TEST(Placeholders, AreQuotedForTheLanguageOfTheTemplate) {
  const Placeholders values{{"RUN", "it's \"here\""}, {"NODES", "2"}};
  const auto shell = [&](const char* text) {
    return filled_in(text, "job", TemplateLanguage::shell, values);
  };
  EXPECT_EQ(shell("run=@RUN@ n=@NODES@"), "run='it'\\''s \"here\"' n=2");
  EXPECT_EQ(filled_in("a: @RUN@", "job", TemplateLanguage::yaml, values),
            "a: \"it's \\\"here\\\"\"");
  EXPECT_EQ(shell("me@host \"${a[@]}\" @run@ @RUN"), "me@host \"${a[@]}\" @run@ @RUN");
}

TEST(Placeholders, AnUnknownOneIsAnErrorWithItsLine) {
  try {
    filled_in("a\nb @RNU@", "job.yaml", TemplateLanguage::yaml, {{"RUN", "x"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "job.yaml:2: unknown placeholder @RNU@; did you mean 'RUN'?");
  }
}

TEST(ShellText, IsReadBackByTheShell) {
  const std::string words[] = {"plain", "", "a b", "it's", "$HOME `x` \\ \"", "-n", "line\nend"};
  for (const std::string& word : words)
    EXPECT_EQ(
        std::system(
            ("test " + shell_word(word) + " = \"$(cat <<'END'\n" + word + "\nEND\n)\"").c_str()),
        0)
        << word;
}

TEST(TomlText, KeepsTypes) {
  EXPECT_EQ(toml_text(Value::list({1, 0.5, true, "a\"b\n", Value::map({{"k v", 1}})})),
            "[1, 0.5, true, \"a\\\"b\\n\", {\"k v\" = 1}]");
}

}  // namespace
}  // namespace titan::commands
