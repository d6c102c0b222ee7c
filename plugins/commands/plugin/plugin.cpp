// titan plugin: finds, installs and verifies plugins from signed indexes, and makes such indexes.
#include <string>
#include <utility>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/suggest.h>

#include "actions.h"
#include "stop_request.h"

namespace titan::plugin_index {
namespace {

struct Action {
  const char* name;
  int (*run)(const Request& request);
};

constexpr Action kActions[] = {
    {"add", add_index},   {"forget", forget_index},  {"list", list_added},     {"search", search},
    {"install", install}, {"remove", remove_plugin}, {"verify", verify_files}, {"pack", pack}};

class PluginCommand final : public Command {
 public:
  static constexpr CommandWords kWords{
      "add|forget|list|search|install|remove|verify|pack [WORD]...", 1, SIZE_MAX};

  PluginCommand(const PluginOptions& options, const CommandContext& context)
      : request_{options, {context.words.begin() + 1, context.words.end()}, *context.plugin_files},
        action_(context.words.front()) {}

  int run() override {
    std::vector<std::string> names;
    for (const Action& action : kActions) {
      if (action_ == action.name) return run(action);
      names.emplace_back(action.name);
    }
    const std::string hint = did_you_mean(action_, names);
    fail(ErrorKind::config, "titan plugin has no action '", action_, "'", hint.empty() ? "" : "; ",
         hint, "; see: titan plugin --help");
  }

 private:
  int run(const Action& action) const {
    try {
      return action.run(request_);
    } catch (const download::Stopped&) {
      log::warn("stopped; nothing was installed");
      return kExitInterrupted;
    }
  }

  Request request_;
  std::string action_;
};

}  // namespace
}  // namespace titan::plugin_index

TITAN_PLUGIN(plugin) {
  using titan::plugin_index::PluginCommand;
  using Options = titan::plugin_index::PluginOptions;
  plugin
      .add<PluginCommand>("plugin",
                          "find, install and verify plugins from signed indexes; make an index")
      .option("config", &Options::config,
              "the configuration whose lock file lists the plugins: job.toml has job.lock")
      .option("lock", &Options::lock, "the lock file itself, instead of --config")
      .option("index", &Options::index, "search and install: only this index, by its name")
      .option("key", &Options::key,
              "add: the public key of minisign that signs the index, or its file; without it the "
              "index's own minisign.pub is pinned")
      .option("output", &Options::output, "pack: folder of the index")
      .option("secret_key", &Options::secret_key,
              "pack: secret key of minisign, which signs the files")
      .option("name", &Options::name, "pack: name of a new index")
      .option("conformance", &Options::conformance,
              "pack: result of titan check --conformance --json on one of the files; can be "
              "repeated")
      .option("expires", &Options::expires, "pack: days until readers refuse the index")
      .between(1, 3650);
}
