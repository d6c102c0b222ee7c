// Commands with one defect each, named after the conformance test that must find it. `right` has
// none, `empty` does nothing. The program checks flags and words itself; a command can only break
// that by declaring others than it shows to the kit.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

namespace {

enum class Fault {
  none,
  usage,
  wrong_flag,
  wrong_value,
  number_of_words,
  exit_codes,
  exit_codes_silent,
  answers
};

struct Options {
  int64_t times = 1;
  std::string times_as_text = "1", unknown;
};

std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  for (const std::string& each : words)
    if (each == word) return true;
  return false;
}

// Prints the size of a file.
template <Fault fault>
class Size final : public titan::Command {
 public:
  static inline titan::CommandWords kWords{"FILE", 1, 1};

  Size(const Options& options, const titan::CommandContext& context)
      : options_(options), words_(context.words) {}

  int run() override {
    if (fault == Fault::answers) return titan::kExitDone;
    const bool exists = !words_.empty() && std::filesystem::exists(words_.front());
    if (fault == Fault::exit_codes && !exists) titan::print("there is no such file\n");
    if ((fault == Fault::exit_codes || fault == Fault::exit_codes_silent) && !exists)
      return fault == Fault::exit_codes ? 7 : 1;
    TITAN_CHECK(exists, io, "there is no file '", words_.empty() ? "" : words_.front(), "'");
    for (int64_t i = 0; i < options_.times; ++i) titan::print(words_.front() + " exists\n");
    return titan::kExitDone;
  }

 private:
  Options options_;
  std::vector<std::string> words_;
};

class Empty final : public titan::Command {
 public:
  explicit Empty(const titan::CommandContext&) {}
  int run() override { return 0; }
};

}  // namespace

TITAN_PLUGIN(plugin) {
  const std::vector<std::string> line = command_line();
  const bool is_kit = has(line, "check");
  const auto declare = [](auto& of) {
    of.option("times", &Options::times, "how often it prints").between(1, 9);
  };
  plugin.add<Size<Fault::none>>("wrong/right", "prints whether a file exists").options(declare);
  plugin.add<Empty>("wrong/empty", "does nothing");
  auto usage = plugin.add<Size<Fault::usage>>("wrong/usage", "hides a flag from the help");
  if (!has(line, "--help") && !has(line, "-h")) declare(usage);
  auto flag = plugin.add<Size<Fault::wrong_flag>>("wrong/wrong_flag", "takes any flag");
  declare(flag);
  if (has(line, "wrong/wrong_flag") && !is_kit)
    for (const std::string& word : line)
      if (word.starts_with("--") && !word.starts_with("--times") && word != "--help") {
        std::string name = word.substr(2, word.find('=') - 2);
        for (char& each : name)
          if (each == '-') each = '_';
        flag.option(name, &Options::unknown, "any");
      }
  auto value = plugin.add<Size<Fault::wrong_value>>("wrong/wrong_value", "takes text for a number");
  if (is_kit)
    declare(value);
  else
    value.option("times", &Options::times_as_text, "how often it prints");
  if (!is_kit) Size<Fault::number_of_words>::kWords = {"FILE", 0, 99};
  plugin.add<Size<Fault::number_of_words>>("wrong/number_of_words", "takes any number of words")
      .options(declare);
  plugin.add<Size<Fault::exit_codes>>("wrong/exit_codes", "ends with 7 without a file")
      .options(declare);
  plugin.add<Size<Fault::exit_codes_silent>>("wrong/exit_codes.silent", "fails without a message")
      .options(declare);
  plugin.add<Size<Fault::answers>>("wrong/answers", "prints nothing").options(declare);
}
