// titan tokenize: a data set of text into tokens on disk, PREFIX.bin and PREFIX.idx.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>

#include "core/commands/command.h"
#include "core/commands/own_flags.h"
#include "core/runtime/signals.h"
#include "core/tokenize/chosen_source.h"
#include "core/tokenize/progress_line.h"
#include "core/tokenize/token_files.h"
#include "core/tokenize/tokenization.h"

namespace titan::core {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr const char* kTokenizeUsage =
    "usage: titan tokenize --output PREFIX [OPTION]... [--section.key VALUE]...\n"
    "\n"
    "  --output PREFIX         makes PREFIX.bin (the tokens) and PREFIX.idx (where each document\n"
    "                          begins), as Megatron reads them; train on them with\n"
    "                          --training.dataset megatron --training.dataset_path PREFIX\n"
    "  --workers N             threads that tokenise (default: one for each core)\n"
    "  --no-bos, --no-eos      leave the token before, after each document away\n"
    "  --overwrite             replace an output that exists, or unfinished work of another kind\n"
    "  --job.config_file FILE, --section.key VALUE\n"
    "                          data set and tokenizer, as titan train takes them:\n"
    "                          training.dataset, training.dataset_path, dataset.NAME.OPTION,\n"
    "                          tokenizer.name, model.hf_assets_path\n"
    "\n"
    "Interrupted at any point, it goes on when it is started again with the same arguments; the\n"
    "number of workers may differ. The same bytes come out in any case.\n";

struct TokenizeArguments {
  fs::path prefix;
  int num_workers = 1;
  bool with_bos = true, with_eos = true, overwrite = false;
  std::vector<std::string> config;
};

TokenizeArguments parse_tokenize(const std::vector<std::string>& words) {
  constexpr int kMostWorkers = 1024;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  po::options_description own("titan tokenize");
  own.add_options()("output", po::value<std::string>(), "")(
      "workers", po::value<int>()->default_value(std::clamp(cores, 1, kMostWorkers)), "")(
      "no-bos", "")("no-eos", "")("overwrite", "");
  const OwnFlags flags = take_own_flags(words, own, "titan tokenize");
  const po::variables_map& values = flags.values;
  TITAN_CHECK(values.count("output"), config,
              "titan tokenize needs --output PREFIX; see: titan tokenize --help");
  TokenizeArguments result = {.prefix = values["output"].as<std::string>(),
                              .num_workers = values["workers"].as<int>(),
                              .with_bos = !values.count("no-bos"),
                              .with_eos = !values.count("no-eos"),
                              .overwrite = values.count("overwrite") > 0,
                              .config = flags.rest};
  TITAN_CHECK(result.prefix.has_filename() && !fs::is_directory(result.prefix), config,
              "--output '", result.prefix.string(),
              "' is a folder; give a folder and the start of a file name, as ",
              (result.prefix / "train").string());
  for (const char* suffix : {".bin", ".idx"})
    TITAN_CHECK(result.prefix.extension() != suffix, config, "--output '", result.prefix.string(),
                "' ends in ", suffix, "; leave that away: .bin and .idx are added to it");
  TITAN_CHECK(result.num_workers >= 1 && result.num_workers <= kMostWorkers, config,
              "--workers must be 1 to ", kMostWorkers, ", got ", result.num_workers);
  return result;
}

/// On a terminal one line that is drawn again and again, elsewhere a line of the log now and then.
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
      log::info("tokenised " + line);
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

Tokenization request_of(const TokenizeArguments& arguments, const ChosenSource& source) {
  const SpecialTokens special = source.tokenizer().special_tokens();
  Tokenization request = {.prefix = arguments.prefix,
                          .dataset = &source.dataset(),
                          .tokenizer = &source.tokenizer(),
                          .framing = {.bos = arguments.with_bos ? special.bos : std::nullopt,
                                      .eos = arguments.with_eos ? special.eos : std::nullopt},
                          .identity = source.identity(),
                          .overwrite = arguments.overwrite,
                          .pipeline = {.num_workers = arguments.num_workers}};
  const auto shown = [](const std::optional<int32_t>& id) { return id ? Value(*id) : Value(); };
  request.identity["token before each document"] = shown(request.framing.bos);
  request.identity["token after each document"] = shown(request.framing.eos);
  return request;
}

}  // namespace

int run_tokenize(const std::vector<std::string>& words) {
  if (asks_for_help(words)) {
    print(kTokenizeUsage);
    return kExitDone;
  }
  const TokenizeArguments arguments = parse_tokenize(words);
  require_usable(token_file_paths(arguments.prefix));
  const ChosenSource source(arguments.config);
  const Tokenization request = request_of(arguments, source);
  log::info(source.description() + ", " + std::to_string(arguments.num_workers) +
            (arguments.num_workers == 1 ? " worker" : " workers"));

  const StopSignals signals;
  ProgressDisplay display(size_of(source.dataset()));
  bool is_first = true;
  const TokenizationState end = tokenise(request, [&](const TokenizationState& state) {
    if (std::exchange(is_first, false) && state.old_documents > 0)
      log::info("going on after " + with_commas(state.old_documents) +
                " documents of an earlier run");
    display.show(state);
    return StopSignals::received() == 0;
  });
  const std::string done =
      progress_line(end, {.documents = {}, .shards = {}}, std::max(display.seconds(), 1e-3));
  display.clear();
  if (!end.is_complete) {
    log::warn("stopped after " + done + "; the same command goes on from there");
    return 128 + StopSignals::received();
  }
  log::info("wrote " + request.prefix.string() + ".bin (" + with_commas(end.bin_bytes) +
            " bytes) and .idx in " + duration_text(display.seconds()) + ": " + done);
  return kExitDone;
}

}  // namespace titan::core
