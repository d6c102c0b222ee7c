// Command `titan @FULL_NAME@ RUN`. As generated, it prints one line per session of the run in the folder RUN.
// titan finds the plugin in the folders that TITAN_PLUGIN_PATH names.
#include <string>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/program/text_table.h>
#include <titan/runs/goodput.h>

namespace {

struct @CLASS@Options {
  bool failed = false;
};

const char* outcome_of(const titan::RunSession& session) {
  using End = titan::RunSession::End;
  switch (session.outcome) {
    case End::finished:
      return "finished";
    case End::stopped:
      return "stopped";
    case End::failed:
      return "failed";
    case End::none:
      break;
  }
  return "killed, or still running";
}

class @CLASS@ final : public titan::Command {
 public:
  static constexpr titan::CommandWords kWords{"RUN", 1, 1};

  @CLASS@(const @CLASS@Options& options, const titan::CommandContext& context)
      : options_(options), folder_(context.words.front()) {}

  int run() override {
    const titan::RunHistory history = titan::read_history(folder_);
    TITAN_CHECK(!history.events.empty(), io, "no run has written into '", folder_, "'");
    std::vector<titan::TextRow> rows{{"first step", "last step", "outcome", "error"}};
    const titan::GoodputMeter goodput = titan::measure_goodput(history.events);
    for (const titan::RunSession& session : goodput.sessions())
      if (!options_.failed || session.outcome == titan::RunSession::End::failed)
        rows.push_back({std::to_string(session.resumed_step + 1), std::to_string(session.last_step), outcome_of(session), session.error});
    titan::print(titan::text_table(rows));
    return titan::kExitDone;
  }

 private:
  @CLASS@Options options_;
  std::string folder_;
};

}  // namespace

TITAN_PLUGIN(plugin) {
  plugin.add<@CLASS@>("@FULL_NAME@", "the sessions of a run: first and last step, and how each ended")
      .option("failed", &@CLASS@Options::failed, "only sessions that failed");
}
