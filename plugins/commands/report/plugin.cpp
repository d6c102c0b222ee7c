// titan report RUN...: writes one HTML file about runs. The exit code is 1 when a folder is not a
// run's.
#include <titan/command.h>
#include <titan/files/file.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>
#include <titan/shown_text.h>

#include "page.h"
#include "page_data.h"
#include "time_text.h"

namespace titan::commands {
namespace {

/// Reduces the data further when many runs with many ranks would exceed the size limit.
std::string small_page(const std::vector<RunFolder>& runs) {
  constexpr size_t kMostBytes = 1'900'000;
  ReportLimits limits;
  while (true) {
    std::string page = to_page(to_page_data(runs, limits));
    if (page.size() <= kMostBytes || limits.curve_numbers < 1000) return page;
    limits.curve_numbers /= 2;
    limits.timeline_spans /= 2;
    limits.breakdown_bars = limits.breakdown_bars * 2 / 3;
  }
}

struct ReportOptions {
  std::filesystem::path output = "report.html";
};

class Report final : public Command {
 public:
  static constexpr CommandWords kWords{"RUN...", 1, 20};

  Report(const ReportOptions& options, const CommandContext& context)
      : options_(options), folders_(context.words) {}

  int run() override {
    std::vector<RunFolder> runs;
    for (const std::string& folder : folders_) runs.push_back(read_run_folder(folder));
    const std::string page = small_page(runs);
    const std::string output = options_.output.string();
    write_text_atomically(output, page);
    for (const RunFolder& run : runs)
      for (const std::string& problem : run.problems)
        print_to_errors(printable_message("warning: " + run.path.string() + ": " + problem) + "\n");
    print(printable(output, output.npos) + ": " + bytes_text(static_cast<double>(page.size())) +
          ", " + std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs") + "\n");
    for (const RunFolder& run : runs)
      if (const std::string text = time_text(run); !text.empty())
        print(printable(run.path.string(), output.npos) + ": " + text);
    return kExitDone;
  }

 private:
  ReportOptions options_;
  std::vector<std::string> folders_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Report;
  using titan::commands::ReportOptions;
  plugin
      .add<Report>("report",
                   "write an HTML page about runs: curves, configuration, where the time went")
      .option("output", &ReportOptions::output, "file to write");
}
