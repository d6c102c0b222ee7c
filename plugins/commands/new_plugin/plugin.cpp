// titan new-plugin KIND OWNER/NAME: writes a complete project for a plugin, from the templates of
// the installation. titan new-plugin: lists the kinds.
#include <filesystem>
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/program/text_table.h>

#include "names.h"
#include "project.h"
#include "templates.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

struct NewPluginOptions {
  fs::path directory;
};

class NewPlugin final : public Command {
 public:
  static constexpr CommandWords kWords{"[KIND OWNER/NAME]", 0, 2};

  NewPlugin(const NewPluginOptions& options, const CommandContext& context)
      : directory_(options.directory),
        words_(context.words),
        prefix_(context.program.parent_path().parent_path()) {}

  int run() override {
    const Templates templates(prefix_ / "share/titan/template");
    if (words_.empty()) return list_kinds(templates);
    const std::string& kind = words_.front();
    templates.require(kind);
    TITAN_CHECK(words_.size() == 2, config,
                "the name of the plugin is missing; usage: titan new-plugin ", kind, " OWNER/NAME");
    const PluginNames names = plugin_names(words_.back());
    const Placeholders texts = templates.placeholders(kind, names);
    const fs::path folder = directory_.empty() ? fs::path(names.name) : directory_;
    for (const fs::path& path : write_project(templates.files(kind, texts), folder))
      print("wrote " + path.string() + "\n");
    print_next_steps(texts, names, folder);
    return kExitDone;
  }

 private:
  static int list_kinds(const Templates& templates) {
    std::vector<TextRow> rows;
    for (const std::string& kind : templates.kinds())
      rows.push_back(
          {kind, templates.placeholders(kind, plugin_names("acme/example")).at("SUMMARY")});
    print("kinds of plugins, and what the project of each does as generated:\n\n" +
          text_table(rows, "  ") + "\ncreate one: titan new-plugin KIND OWNER/NAME\n");
    return kExitDone;
  }

  void print_next_steps(const Placeholders& texts, const PluginNames& names,
                        const fs::path& folder) const {
    print("\nbuild it:\n");
    std::string root = prefix_.string();
    std::error_code error;
    if (!fs::exists(prefix_ / "lib/cmake/Titan/TitanConfig.cmake", error)) {  // a build tree
      root = "<prefix>";
      print("  cmake --install " + prefix_.string() + " --prefix <prefix>\n");
    }
    const std::string directory = folder.string();
    const std::string plugins =
        (fs::absolute(folder) / "build/lib/titan/plugins").lexically_normal().string();
    print("  cmake -S " + directory + " -B " + directory + "/build -DTitan_ROOT=" + root +
          " && cmake --build " + directory + "/build\n");
    print("test it:\n  ctest --test-dir " + directory + "/build\n");
    print("look at it:\n  titan check " + plugins + "/" + names.library + ".plugin.so\n");
    print("train 10 steps with it:\n  cd " + directory + " && " + texts.at("TRAIN") + "\n");
    if (!texts.at("USE").empty()) print("use it:\n  " + texts.at("USE") + "\n");
    if (texts.at("SELECT").empty()) return;
    print("train with it in another configuration:\n  [plugins]\n  paths = [\"" + plugins +
          "\"]\n");
    print("  " + indented(texts.at("SELECT")) + "\n");
  }

  /// With two blanks before each further line.
  static std::string indented(std::string text) {
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.insert(at + 1, "  ");
    return text;
  }

  fs::path directory_;
  std::vector<std::string> words_;
  fs::path prefix_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::NewPlugin;
  using titan::commands::NewPluginOptions;
  plugin
      .add<NewPlugin>("new-plugin",
                      "create a project for a plugin: source, tests, recipe, README, CI")
      .option("directory", &NewPluginOptions::directory, "folder to write it into; unset: ./NAME");
}
