// titan inspect CHECKPOINT: what it holds, and what is damaged. Exit code 1 when anything is.
#include <unistd.h>

#include <titan/shown_text.h>

#include "core/base/arguments.h"
#include "core/base/terminal.h"
#include "core/checkpoint/format/inspection.h"
#include "core/commands/command.h"

namespace titan::core {
namespace {

/// A line on the terminal that is written anew; none where standard error is a file.
class ProgressLine {
 public:
  void add(int64_t bytes, int64_t all) {
    if (!is_terminal_) return;
    done_ += bytes;
    const int percent =
        all > 0 ? static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(all))
                : 100;
    if (percent == shown_) return;
    shown_ = percent;
    redraw_line("reading: " + std::to_string(percent) + " %");
  }
  void clear() const {
    if (shown_ >= 0) redraw_line("");
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  int64_t done_ = 0;
  int shown_ = -1;
};

}  // namespace

int run_inspect(const std::vector<std::string>& arguments) {
  namespace po = boost::program_options;
  po::options_description flags;
  flags.add_options()("verify", "read every byte and compare the hashes");
  flags.add_options()("tensors", "list every tensor");
  flags.add_options()("json", "JSON, for programs");
  const Arguments parsed = parse_arguments(
      "titan inspect CHECKPOINT [--verify] [--tensors] [--json]", flags, arguments, 1, 1);
  if (parsed.wants_help) return kExitDone;

  ProgressLine progress;
  const Inspection inspection =
      inspect(parsed.words.front(),
              parsed.flags.count("verify") ? Thoroughness::bytes : Thoroughness::headers,
              [&](int64_t bytes, int64_t all) { progress.add(bytes, all); });
  progress.clear();
  const TensorList tensors =
      parsed.flags.count("tensors") ? TensorList::included : TensorList::left_out;
  if (parsed.flags.count("json")) {
    print_json(to_json(to_value(inspection, tensors), 2) + "\n");
  } else {
    print(to_text(inspection, tensors));
    if (!inspection.damage.empty()) print("\n");
    for (const std::string& line : inspection.damage)
      print(printable_message("damaged: " + line) + "\n");
  }
  return inspection.damage.empty() ? kExitDone : kExitRuntimeError;
}

}  // namespace titan::core
