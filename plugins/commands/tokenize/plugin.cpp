// titan tokenize: tokenizes a data set to disk, PREFIX.bin and PREFIX.idx.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <titan/command.h>
#include <titan/error.h>
#include <titan/job_parts.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/stop_signals.h>
#include <titan/program/terminal.h>

#include "progress_line.h"
#include "token_files.h"
#include "tokenization.h"

namespace titan::tokenising {
namespace {

namespace fs = std::filesystem;

constexpr int kMostWorkers = 1024;

struct TokenizeOptions {
  fs::path output;                 ///< PREFIX of PREFIX.bin and PREFIX.idx
  std::optional<int64_t> workers;  ///< unset: one per core
  bool no_bos = false, no_eos = false, overwrite = false;
};

/// Throws a config Error for an unusable output path.
void check(const TokenizeOptions& options) {
  const fs::path& prefix = options.output;
  TITAN_CHECK(!prefix.empty(), config,
              "titan tokenize needs --output PREFIX; see: titan tokenize --help");
  TITAN_CHECK(prefix.has_filename() && !fs::is_directory(prefix), config, "--output '",
              prefix.string(), "' is a folder; give a folder and the start of a file name, as ",
              (prefix / "train").string());
  for (const char* suffix : {".bin", ".idx"})
    TITAN_CHECK(prefix.extension() != suffix, config, "--output '", prefix.string(), "' ends in ",
                suffix, "; leave the suffix out: .bin and .idx are added");
}

int num_workers(const TokenizeOptions& options) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return options.workers ? static_cast<int>(*options.workers) : std::clamp(cores, 1, kMostWorkers);
}

/// On a terminal a line that is redrawn, elsewhere a log line now and then.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(SourceSize size)
      : size_(size), is_terminal_(::isatty(STDERR_FILENO) == 1), start_(monotonic_seconds()) {}
  ~ProgressDisplay() { clear(); }

  void show(const TokenizationState& state) {
    constexpr double kRedraw = 0.2, kLogLine = 10;
    const double now = monotonic_seconds();
    if (now - last_ < (is_terminal_ ? kRedraw : kLogLine)) return;
    last_ = now;
    const std::string line = progress_line(state, size_, now - start_);
    if (!is_terminal_) {
      log::info("tokenized " + line);
      return;
    }
    winsize window = {};
    const bool has_width = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
    const size_t width = has_width ? window.ws_col - 1u : 79u;
    redraw_line(line.substr(0, width));
    is_drawn_ = true;
  }
  void clear() {
    if (is_drawn_) redraw_line("");
    is_drawn_ = false;
  }
  double seconds() const { return monotonic_seconds() - start_; }

 private:
  const SourceSize size_;
  const bool is_terminal_;
  const double start_;
  double last_ = monotonic_seconds();
  bool is_drawn_ = false;
};

SourceSize size_of(const Dataset& dataset) {
  if (dataset.indexed()) return {.documents = dataset.indexed()->size(), .shards = {}};
  return {.documents = {}, .shards = dataset.streamed()->num_shards()};
}

Tokenization request_of(const TokenizeOptions& options, const OpenedData& source) {
  const SpecialTokens special = source.tokenizer().special_tokens();
  Tokenization request = {.prefix = options.output,
                          .dataset = &source.dataset(),
                          .tokenizer = &source.tokenizer(),
                          .framing = {.bos = options.no_bos ? std::nullopt : special.bos,
                                      .eos = options.no_eos ? std::nullopt : special.eos},
                          .identity = source.identity(),
                          .overwrite = options.overwrite,
                          .pipeline = {.num_workers = num_workers(options)}};
  const auto shown = [](const std::optional<int32_t>& id) { return id ? Value(*id) : Value(); };
  request.identity["token before each document"] = shown(request.framing.bos);
  request.identity["token after each document"] = shown(request.framing.eos);
  return request;
}

class Tokenize final : public Command {
 public:
  static constexpr CommandWords kWords{.most = SIZE_MAX, .takes_job = true};

  Tokenize(const TokenizeOptions& options, CommandContext context)
      : options_(options), context_(std::move(context)) {
    check(options_);
  }
  int run() override;

 private:
  TokenizeOptions options_;
  CommandContext context_;
};

int Tokenize::run() {
  require_usable(token_file_paths(options_.output));
  const auto source =
      context_.parts->open_data({.command = "titan tokenize",
                                 .job = context_.words,
                                 .no_conversations = "a file of tokens has no loss mask"});
  const Tokenization request = request_of(options_, *source);
  const int workers = request.pipeline.num_workers;
  log::info(source->description() + ", " + std::to_string(workers) +
            (workers == 1 ? " worker" : " workers"));

  const StopSignals signals;
  ProgressDisplay display(size_of(source->dataset()));
  bool is_first = true;
  const TokenizationState end = tokenise(request, [&](const TokenizationState& state) {
    if (std::exchange(is_first, false) && state.old_documents > 0)
      log::info("continuing after " + with_commas(state.old_documents) +
                " documents of an earlier run");
    display.show(state);
    return StopSignals::received() == 0;
  });
  const std::string done =
      progress_line(end, {.documents = {}, .shards = {}}, std::max(display.seconds(), 1e-3));
  display.clear();
  if (!end.is_complete) {
    log::warn("stopped after " + done + "; run the same command again to continue");
    return 128 + StopSignals::received();
  }
  log::info("wrote " + request.prefix.string() + ".bin (" + with_commas(end.bin_bytes) +
            " bytes) and .idx in " + duration_text(display.seconds()) + ": " + done);
  return kExitDone;
}

}  // namespace
}  // namespace titan::tokenising

TITAN_PLUGIN(plugin) {
  using titan::tokenising::kMostWorkers;
  using Options = titan::tokenising::TokenizeOptions;
  plugin
      .add<titan::tokenising::Tokenize>("tokenize",
                                        "convert text to tokens on disk, once for many runs")
      .option(
          "output", &Options::output,
          "PREFIX: makes PREFIX.bin (the tokens) and PREFIX.idx (the position of each document), "
          "as Megatron reads them; train on them with --training.dataset megatron "
          "--training.dataset_path PREFIX. Interrupted at any point, the same command continues "
          "from there, also with another number of workers")
      .option("workers", &Options::workers, "threads that tokenize; unset: one per core")
      .between(1, kMostWorkers)
      .option("no_bos", &Options::no_bos, "do not write BOS before documents")
      .option("no_eos", &Options::no_eos, "do not write EOS after documents")
      .option("overwrite", &Options::overwrite,
              "replace an existing output, or unfinished work with other settings");
}
