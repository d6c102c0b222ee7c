// titan trace FOLDER: the traces of all ranks in one file for Perfetto.
#include <charconv>
#include <filesystem>
#include <optional>

#include <titan/shown_text.h>

#include "core/base/arguments.h"
#include "core/base/quantity_text.h"
#include "core/base/terminal.h"
#include "core/commands/runs/runs.h"
#include "core/trace/merged_trace.h"
#include "core/trace/trace_text.h"

namespace titan::core {
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

/// `folder` itself, or the last of the iterations in it.
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

}  // namespace

int merge_traces(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("output", po::value<std::string>(),
                      "the file to write, packed when it ends in .gz (default: beside the folder "
                      "of the iteration, <folder>.json.gz)");
  const Arguments parsed =
      parse_arguments("titan trace FOLDER [--output FILE]", flags, arguments, 1, 1);
  if (parsed.wants_help) return kExitDone;
  const std::filesystem::path named = std::filesystem::path(parsed.words.front()) / "";
  const std::filesystem::path folder = folder_of_traces(named.parent_path());
  const std::vector<RankTraceFile> files = find_rank_traces(folder);
  const MergedTrace merged = merge_traces(files);
  const std::string output = parsed.flags.count("output") ? parsed.flags["output"].as<std::string>()
                                                          : folder.string() + ".json.gz";
  write_trace(output, merged.text);
  print(printable_lines(with_commas(merged.num_events) + " events of " +
                        std::to_string(files.size()) + (files.size() == 1 ? " rank" : " ranks") +
                        ", " + with_commas(merged.num_collectives) +
                        " collectives with arrows between ranks: " + output +
                        "\nopen it at ui.perfetto.dev or in chrome://tracing\n"));
  return kExitDone;
}

}  // namespace titan::core
