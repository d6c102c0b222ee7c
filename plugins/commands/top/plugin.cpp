// titan top RUN: shows all ranks of a run while it trains. It only reads files that the ranks
// write. With --once the exit code is 1 when a rank is silent.
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include <titan/command.h>
#include <titan/plugin.h>
#include <titan/program/clock.h>
#include <titan/program/environment.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "followed_goodput.h"
#include "live_screen.h"
#include "view.h"

namespace titan::commands {
namespace {

constexpr size_t kWideEnough = 120;  // columns of --once, whose output is not a terminal's screen

class RunWatch {
 public:
  explicit RunWatch(std::string folder) : folder_(std::move(folder)), goodput_(folder_) {
    TITAN_CHECK(std::filesystem::is_directory(folder_), io, "there is no folder '", folder_,
                "'; a run's folder is its job.dump_folder");
  }
  RunSnapshot look() {
    RunSnapshot snapshot = to_snapshot(read_rank_statuses(folder_), wall_seconds());
    snapshot.goodput = goodput_.share();
    return snapshot;
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  FollowedGoodput goodput_;
};

int show_once(RunWatch& run) {
  const RunSnapshot snapshot = run.look();
  TITAN_CHECK(!snapshot.rows.empty() || snapshot.num_unreadable > 0, io,
              "no rank has written a status into '", run.folder(),
              "/status'; a run of this version "
              "writes it while it trains");
  for (const std::string& line : to_view(snapshot, run.folder(), {.columns = kWideEnough}).lines) {
    const size_t end = line.find_last_not_of(' ') + 1;  // npos + 1 = 0
    print(line.substr(0, end) + "\n");
  }
  return snapshot.count(RankMark::silent) > 0 ? kExitRuntimeError : kExitDone;
}

/// Whether `key` ends the program.
bool apply(const std::string& key, const View& view, ViewOptions& options) {
  constexpr int kNumOrders = 5;
  if (key == "q") return true;
  options.page = view.page;
  if (key == "o") {
    options.order = static_cast<RankOrder>((static_cast<int>(options.order) + 1) % kNumOrders);
    options.page = 0;
  } else if (key == " " || key == "page down" || key == "down" || key == "j") {
    ++options.page;
  } else if (key == "b" || key == "page up" || key == "up" || key == "k") {
    options.page -= options.page > 0 ? 1 : 0;
  } else if (key == "home" || key == "g") {
    options.page = 0;
  }
  return false;
}

/// Returns the termination signal; 0 when a key ended the program.
int watch(RunWatch& run) {
  LiveScreen screen;
  ViewOptions options{.has_colours = !Environment::of_process().has("NO_COLOR")};
  RunSnapshot snapshot = run.look();
  double looked = monotonic_seconds();
  while (true) {
    options.columns = screen.columns();
    options.rows = screen.rows();
    const View view = to_view(snapshot, run.folder(), options);
    screen.show(view.lines);
    const double left = looked + 1 - monotonic_seconds();
    switch (screen.wait(left > 0 ? left : 0)) {
      case LiveScreen::Event::end:
        return screen.end_signal().value_or(0);
      case LiveScreen::Event::key:
        if (apply(screen.key(), view, options)) return 0;
        break;
      case LiveScreen::Event::time:
        snapshot = run.look();
        looked = monotonic_seconds();
        break;
      case LiveScreen::Event::resize:
        break;
    }
  }
}

struct TopOptions {
  bool once = false;
};

class Top final : public Command {
 public:
  static constexpr CommandWords kWords{"RUN", 1, 1};

  Top(const TopOptions& options, const CommandContext& context)
      : options_(options), folder_(context.words.front()) {}

  int run() override {
    RunWatch run(folder_);
    if (options_.once || !::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO)) return show_once(run);
    const int signal = watch(run);
    if (signal == 0 || signal == SIGINT) return kExitDone;
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return kExitRuntimeError;
  }

 private:
  TopOptions options_;
  std::string folder_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::Top;
  using titan::commands::TopOptions;
  plugin.add<Top>("top", "watch all ranks of a run: step, what each waits for, memory")
      .option("once", &TopOptions::once, "print all ranks once, as text");
}
