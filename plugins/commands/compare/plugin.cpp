// titan compare RUN RUN: finds where two runs diverge. The exit code is 1 when they do.
#include <titan/command.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/shown_text.h>

#include "comparison.h"

namespace titan::commands {
namespace {

struct CompareOptions {
  double tolerance = 0;
  bool json = false;
};

class Compare final : public Command {
 public:
  static constexpr CommandWords kWords{"RUN RUN", 2, 2};

  Compare(const CompareOptions& options, const CommandContext& context)
      : options_(options), runs_(context.words) {}

  int run() override {
    const Comparison comparison =
        compare(read_run(runs_[0]), read_run(runs_[1]), options_.tolerance);
    if (options_.json)
      print_json(to_json(to_value(comparison), 2) + "\n");
    else
      print(printable_lines(to_text(comparison)));
    return comparison.are_same() ? kExitDone : kExitRuntimeError;
  }

 private:
  CompareOptions options_;
  std::vector<std::string> runs_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Compare;
  using titan::commands::CompareOptions;
  plugin
      .add<Compare>("compare",
                    "find where two runs diverge: configuration, data, losses, first layer")
      .option("tolerance", &CompareOptions::tolerance, "relative tolerance; 0: bitwise equal")
      .at_least(0)
      .option("json", &CompareOptions::json, "print JSON");
}
