// titan completion and __complete: completion in shells. titan schema: the JSON Schema of a
// configuration. __man: manual pages. All is made from the declarations of the
// program and its plugins.
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/plugin.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "completion.h"
#include "declared.h"
#include "job_schema.h"
#include "man_pages.h"
#include "shell_scripts.h"

namespace titan::commands {
namespace {

class PrintCompletion final : public Command {
 public:
  static constexpr CommandWords kWords{"bash|zsh|fish", 1, 1};

  explicit PrintCompletion(const CommandContext& context) : shell_(context.words.front()) {}

  int run() override {
    const std::string_view script = shell_ == "bash"   ? kBashScript
                                    : shell_ == "zsh"  ? kZshScript
                                    : shell_ == "fish" ? kFishScript
                                                       : "";
    TITAN_CHECK(!script.empty(), config, "there is no completion for '", shell_,
                "'; there is one for bash, zsh and fish");
    print_raw(script, stdout);
    return kExitDone;
  }

 private:
  std::string shell_;
};

/// First a line for the shell: what it offers itself, and whether words continue. Then a candidate
/// a line, with its text after a tab.
class Complete final : public Command {
 public:
  static constexpr CommandWords kWords{.usage = "WORD...", .most = SIZE_MAX, .takes_command = true};

  explicit Complete(CommandContext context) : context_(std::move(context)) {}

  int run() override {
    try {
      const Value all = declared_once(context_.program, plugin_folders(context_.words));
      if (!all.is_null()) show(complete(all, context_.words));
    } catch (const Error&) {  // a shell's prompt is no place for messages; titan doctor tells them
      return kExitRuntimeError;
    }
    return kExitDone;
  }

 private:
  static void show(const Offer& offer) {
    std::string text = offer.otherwise == Offer::Else::files     ? "files"
                       : offer.otherwise == Offer::Else::folders ? "folders"
                                                                 : "nothing";
    text += offer.continues ? " continues\n" : "\n";
    for (const Candidate& candidate : offer.candidates)
      text += printable(candidate.word, std::string::npos) +
              (candidate.text.empty() ? "" : "\t" + printable(candidate.text, std::string::npos)) +
              "\n";
    print_raw(text, stdout);
  }

  CommandContext context_;
};

struct SchemaOptions {
  std::vector<std::filesystem::path> path;
  std::filesystem::path output;
};

class WriteSchema final : public Command {
 public:
  WriteSchema(const SchemaOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {}

  int run() override {
    std::vector<std::string> folders;
    for (const std::filesystem::path& folder : options_.path) folders.push_back(folder.string());
    const std::string json = to_json(job_schema(declared(context_.program, folders)), 1) + "\n";
    if (options_.output.empty())
      print_json(json);
    else
      write_text_atomically(options_.output, json);
    return kExitDone;
  }

 private:
  SchemaOptions options_;
  CommandContext context_;
};

/// SOURCE_DATE_EPOCH makes the pages of a build reproducible.
std::string date_of_pages() {
  const auto fixed = Environment::of_process().get("SOURCE_DATE_EPOCH");
  const auto time =
      fixed ? static_cast<std::time_t>(parse_integer(
                  *fixed, "environment variable SOURCE_DATE_EPOCH", 0, int64_t{1} << 40))
            : std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

class WriteManual final : public Command {
 public:
  static constexpr CommandWords kWords{"FOLDER", 1, 1};

  explicit WriteManual(CommandContext context) : context_(std::move(context)) {}

  int run() override {
    const std::filesystem::path folder = context_.words.front();
    for (const auto& [name, text] : man_pages(declared(context_.program, {}), date_of_pages())) {
      std::filesystem::create_directories((folder / name).parent_path());
      write_text_atomically(folder / name, text);
    }
    return kExitDone;
  }

 private:
  CommandContext context_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using namespace titan::commands;
  plugin.add<PrintCompletion>("completion", "print the completion script of a shell");
  plugin.add<WriteSchema>("schema", "write the JSON Schema of a configuration, for editors")
      .option("path", &SchemaOptions::path, "folder of further plugins; may be repeated")
      .option("output", &SchemaOptions::output, "file to write; default: standard output");
  plugin.add<WriteManual>("__man", "write the manual pages below FOLDER, as for share/man");
  plugin.add<Complete>("__complete", "candidates for the last word, for completion scripts");
}
