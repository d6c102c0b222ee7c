// titan inspect CHECKPOINT: shows its contents and damage. The exit code is 1 when it is damaged.
#include <unistd.h>

#include <titan/command.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>
#include <titan/shown_text.h>

#include "inspection.h"

namespace titan::commands {
namespace {

/// A line on the terminal that is redrawn; not shown when standard error is a file.
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

struct InspectOptions {
  bool verify = false;
  bool tensors = false;
  bool json = false;
};

class Inspect final : public Command {
 public:
  static constexpr CommandWords kWords{"CHECKPOINT", 1, 1};

  Inspect(const InspectOptions& options, const CommandContext& context)
      : options_(options), folder_(context.words.front()) {}

  int run() override {
    ProgressLine progress;
    const Inspection inspection =
        inspect(folder_, options_.verify ? Thoroughness::bytes : Thoroughness::headers,
                [&](int64_t bytes, int64_t all) { progress.add(bytes, all); });
    progress.clear();
    const TensorList tensors = options_.tensors ? TensorList::included : TensorList::left_out;
    if (options_.json) {
      print_json(to_json(to_value(inspection, tensors), 2) + "\n");
    } else {
      print(to_text(inspection, tensors));
      if (!inspection.damage.empty()) print("\n");
      for (const std::string& line : inspection.damage)
        print(printable_message("damaged: " + line) + "\n");
    }
    return inspection.damage.empty() ? kExitDone : kExitRuntimeError;
  }

 private:
  InspectOptions options_;
  std::string folder_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Inspect;
  using titan::commands::InspectOptions;
  plugin.add<Inspect>("inspect", "show what a checkpoint holds, and whether it is damaged")
      .option("verify", &InspectOptions::verify, "read every byte and compare the hashes")
      .option("tensors", &InspectOptions::tensors, "list every tensor")
      .option("json", &InspectOptions::json, "print JSON");
}
