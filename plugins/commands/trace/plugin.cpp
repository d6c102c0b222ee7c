// titan trace FOLDER: merges the traces of all ranks into one file for Perfetto.
#include <charconv>
#include <filesystem>
#include <optional>

#include <titan/command.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>
#include <titan/runs/trace_text.h>
#include <titan/shown_text.h>

#include "merged_trace.h"

namespace titan::commands {
namespace {

/// The number in "iteration_20".
std::optional<int64_t> iteration_of(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  constexpr std::string_view kPrefix = "iteration_";
  int64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  return error == std::errc() && rest == end ? std::optional(step) : std::nullopt;
}

/// `folder` itself, or its subfolder of the last iteration.
std::filesystem::path folder_of_traces(const std::filesystem::path& folder) {
  std::filesystem::path last = folder;
  std::error_code ignored;
  int64_t highest = -1;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (const auto step = iteration_of(entry.path()); step && *step > highest) {
      highest = *step;
      last = entry.path();
    }
  return last;
}

struct TraceOptions {
  std::optional<std::filesystem::path> output;
};

class Trace final : public Command {
 public:
  static constexpr CommandWords kWords{"FOLDER", 1, 1};

  Trace(const TraceOptions& options, const CommandContext& context)
      : options_(options), named_(context.words.front()) {}

  int run() override {
    const std::filesystem::path folder = folder_of_traces((named_ / "").parent_path());
    const std::vector<RankTraceFile> files = find_rank_traces(folder);
    const MergedTrace merged = merge_traces(files);
    const std::string output = options_.output.value_or(folder.string() + ".json.gz").string();
    write_trace(output, merged.text);
    print(printable_lines(with_commas(merged.num_events) + " events of " +
                          std::to_string(files.size()) + (files.size() == 1 ? " rank" : " ranks") +
                          ", " + with_commas(merged.num_collectives) +
                          " collectives with arrows between ranks: " + output +
                          "\nopen it at ui.perfetto.dev or in chrome://tracing\n"));
    return kExitDone;
  }

 private:
  TraceOptions options_;
  std::filesystem::path named_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Trace;
  using titan::commands::TraceOptions;
  plugin.add<Trace>("trace", "merge the traces of all ranks into one file for Perfetto")
      .option(
          "output", &TraceOptions::output,
          "the file to write, compressed when it ends in .gz (default: next to the folder of the "
          "iteration, <folder>.json.gz)");
}
