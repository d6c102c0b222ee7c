// Tests of commands.
#include <algorithm>

#include "kit/program.h"
#include "kit/test.h"

namespace titan::conformance::command_kind {
namespace {

namespace fs = std::filesystem;

ProgramRun called(TestContext& test, std::vector<std::string> words) {
  words.insert(words.begin(), test.subject().name);
  const fs::path folder = test.place().folder / "work";
  fs::create_directories(folder);
  return run_program({test.place().program, words, folder, {"TITAN_PLUGIN_PATH=" + [&] {
                        std::error_code unknown;
                        const fs::path own = test.place().file.parent_path();
                        return fs::equivalent(own, test.place().own_folder, unknown) ? std::string()
                                                                                     : own.string();
                      }()}});
}

std::string flag_of(const Option& option) {
  std::string flag = "--" + option.name;
  std::replace(flag.begin() + 2, flag.end(), '_', '-');
  return flag;
}

void help(TestContext& test) {
  for (const char* flag : {"--help", "-h"}) {
    const ProgramRun run = called(test, {flag});
    test.expect(run.code == 0, flag, " ", run.end());
    test.expect(run.errors.empty(), flag, " prints to standard error: ", run.errors);
    test.expect(run.output.find("titan " + test.subject().name) != std::string::npos, flag,
                " does not print the name of the command");
    for (const Option& option : test.subject().component->schema.options)
      test.expect(run.output.find(flag_of(option)) != std::string::npos, flag,
                  " does not print the flag ", flag_of(option));
  }
}

/// As many words as the command needs, none of which is a file.
std::vector<std::string> words_of_nothing(TestContext& test) {
  return std::vector<std::string>(test.subject().component->words.fewest, "no-such-file-1");
}

/// Calls it with a flag and as many words as it needs, so that no other mistake is reported.
ProgramRun called_with(TestContext& test, std::vector<std::string> flag) {
  const std::vector<std::string> words = words_of_nothing(test);
  flag.insert(flag.end(), words.begin(), words.end());
  return called(test, std::move(flag));
}

/// Calls it with names of files that do not exist. Without one, a command that takes a job would
/// run the default job.
ProgramRun called_in_vain(TestContext& test) {
  std::vector<std::string> words = words_of_nothing(test);
  if (test.subject().component->words.takes_job)
    words.insert(words.end(), {"--job.config_file", "no-such-file-1.toml"});
  return called(test, std::move(words));
}

void wrong_flag(TestContext& test) {
  const ProgramRun run = called_with(test, {"--no-such-flag-1=x"});
  test.expect(run.code == 2, "an unknown flag is not refused with exit code 2: it ", run.end());
  test.expect(run.errors.find("no-such-flag-1") != std::string::npos,
              "the message on an unknown flag does not name it: ", run.errors);
}

void wrong_value(TestContext& test) {
  for (const Option& option : test.subject().component->schema.options) {
    if (option.type != OptionType::integer && option.type != OptionType::number) continue;
    const ProgramRun run = called_with(test, {flag_of(option), "no-number"});
    test.expect(run.code == 2, flag_of(option), " no-number is not refused with exit code 2: it ",
                run.end());
    test.expect(run.errors.find(flag_of(option)) != std::string::npos ||
                    run.errors.find(option.name) != std::string::npos,
                "the message on a wrong value of ", flag_of(option),
                " does not name it: ", run.errors);
    return;
  }
  throw NotApplicable{"no flag takes a number"};
}

void number_of_words(TestContext& test) {
  const CommandWords& words = test.subject().component->words;
  if (words.takes_job || words.takes_command) throw NotApplicable{"its words are those of a job"};
  if (words.fewest > 0) {
    const ProgramRun run = called(test, std::vector<std::string>(words.fewest - 1, "word"));
    test.expect(run.code == 2, "fewer words than ", words.fewest,
                " are not refused with exit code 2: it ", run.end());
  }
  if (words.most < 100) {
    const ProgramRun run = called(test, std::vector<std::string>(words.most + 1, "word"));
    test.expect(run.code == 2, "more words than ", words.most,
                " are not refused with exit code 2: it ", run.end());
  }
}

void exit_codes(TestContext& test) {
  const ProgramRun run = called_in_vain(test);
  test.expect(run.code == 0 || run.code == 1 || run.code == 2 || run.code == 3 || run.code == 75,
              "called with names of files that do not exist it ", run.end());
  test.expect(run.code == 0 || !run.errors.empty() || !run.output.empty(),
              "it ends with exit code ", run.code, " and without a message");
}

void answers(TestContext& test) {
  const ProgramRun run = called_in_vain(test);
  test.expect(
      !run.output.empty() || !run.errors.empty() || !fs::is_empty(test.place().folder / "work"),
      "called with ", words_of_nothing(test).size(), " words it prints nothing and makes no file");
}

void listed(TestContext& test) {
  if (test.subject().name.starts_with("__"))
    throw NotApplicable{"names that begin with __ are those of commands for scripts"};
  const ProgramRun run =
      run_program({test.place().program,
                   {"--help"},
                   {},
                   {"TITAN_PLUGIN_PATH=" + test.place().file.parent_path().string()}});
  test.expect(run.code == 0 && run.output.find(test.subject().name) != std::string::npos,
              "titan --help does not list the command");
}

}  // namespace
}  // namespace titan::conformance::command_kind

namespace titan::conformance {

std::vector<Test> command_tests() {
  using namespace command_kind;
  constexpr const char* kKind = "command";
  return {
      {kKind, "usage", "--help and -h print the command's name and every flag, and end with 0.",
       help},
      {kKind, "listed", "titan --help lists the command.", listed},
      {kKind, "wrong_flag", "An unknown flag is refused with exit code 2, by its name.",
       wrong_flag},
      {kKind, "wrong_value",
       "A text in place of a number is refused with exit code 2, by the name of the flag.",
       wrong_value},
      {kKind, "number_of_words", "Too few and too many words are refused with exit code 2.",
       number_of_words},
      {kKind, "exit_codes",
       "Called with names of files that do not exist it ends with 0, 1, 2, 3 or 75; not with 0, it "
       "has a message.",
       exit_codes},
      {kKind, "answers",
       "Called with as many words as it needs it prints something, or makes a file.", answers},
  };
}

}  // namespace titan::conformance
