// titan report RUN...: what runs did, as one HTML file. Exit code 1 when a folder is none of a run.
#include "core/base/arguments.h"
#include "core/base/file.h"
#include "core/base/quantity_text.h"
#include "core/base/terminal.h"
#include "core/commands/runs/runs.h"
#include "core/report/page.h"
#include "core/report/page_data.h"

namespace titan::core {
namespace {

/// Thins out more where many runs of many ranks would not fit otherwise.
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

}  // namespace

int write_report(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("out", po::value<std::string>()->default_value("report.html"),
                      "the file to write");
  constexpr size_t kMostRuns = 20;
  const Arguments parsed =
      parse_arguments("titan report RUN... [--out FILE]", flags, arguments, 1, kMostRuns);
  if (parsed.wants_help) return kExitDone;
  std::vector<RunFolder> runs;
  for (const std::string& folder : parsed.words) runs.push_back(read_run_folder(folder));
  const std::string page = small_page(runs);
  const std::string out = parsed.flags["out"].as<std::string>();
  write_text_atomically(out, page);
  for (const RunFolder& run : runs)
    for (const std::string& problem : run.problems)
      print_to_errors(printable_message("warning: " + run.path.string() + ": " + problem) + "\n");
  print(printable(out, out.npos) + ": " + bytes_text(static_cast<double>(page.size())) + ", " +
        std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs") + "\n");
  return kExitDone;
}

}  // namespace titan::core
