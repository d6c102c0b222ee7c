// titan bench: measures a job, or compares two in alternating runs. Each run is a complete training
// run, started as a user would start it. The figures come from the files that it writes.
#include <filesystem>
#include <limits>
#include <sstream>

#include <titan/command.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/plugin.h>
#include <titan/program/exit_codes.h>
#include <titan/program/terminal.h>

#include "gemm.h"
#include "pairs.h"

namespace titan::commands {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFewestPairs = 7, kMostSteps = 1'000'000;

struct BenchOptions {
  int64_t warmup = 3, steps = 10, interval = 1;
  std::optional<std::string> nproc;
  std::optional<std::string> json, keep;  // paths
  std::optional<std::filesystem::path> program;
  bool no_gemm = false;
  std::optional<std::string> against, vs_flags, vs_config, vs_program, vs_nproc;
  std::optional<int64_t> pairs;
};

struct BenchRequest {
  BenchSide a;
  std::optional<BenchSide> b;
  BenchSteps steps;
  int64_t num_pairs = kFewestPairs;
  std::optional<std::string> json, keep;
  bool has_gemm = true;
};

/// Splits `text` at blanks like a shell; '...' and "..." keep blanks.
std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      if (!word) word.emplace();
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && c == ' ') {
      if (word) words.push_back(*word);
      word.reset();
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  TITAN_CHECK(quote == 0, config, "--vs-flags: a ", quote, " without its closing quote in: ", text);
  if (word) words.push_back(*word);
  return words;
}

/// `arguments`, with the values of keys that `others` also sets replaced.
std::vector<std::string> overridden(std::vector<std::string> arguments,
                                    const std::vector<std::string>& others) {
  for (const std::string& other : others) {
    if (!other.starts_with("--")) continue;
    const std::string key = other.substr(0, other.find('='));
    std::vector<std::string> kept;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool is_it = arguments[i].substr(0, arguments[i].find('=')) == key;
      if (!is_it) {
        kept.push_back(arguments[i]);
      } else if (arguments[i] == key && i + 1 < arguments.size() &&
                 !arguments[i + 1].starts_with("--")) {
        ++i;  // its value
      }
    }
    arguments = std::move(kept);
  }
  arguments.insert(arguments.end(), others.begin(), others.end());
  return arguments;
}

/// Checks the flags and collects all problems, so that one error reports them together.
class RequestReader {
 public:
  RequestReader(const BenchOptions& options, const CommandContext& context)
      : options_(options), context_(context) {}

  BenchRequest read() {
    BenchRequest request;
    request.steps.warmup = options_.warmup;
    request.steps.measured = options_.steps;
    request.steps.interval = options_.interval;
    if (request.steps.warmup % request.steps.interval != 0 ||
        request.steps.measured % request.steps.interval != 0)
      wrong("--warmup (" + std::to_string(request.steps.warmup) + ") and --steps (" +
            std::to_string(request.steps.measured) + ") must be multiples of --interval (" +
            std::to_string(request.steps.interval) + ")");
    request.num_pairs = options_.pairs.value_or(kFewestPairs);
    request.json = options_.json;
    request.keep = options_.keep;
    if (const fs::path parent = fs::path(request.json.value_or("")).parent_path();
        !parent.empty() && !fs::is_directory(parent))
      wrong("--json: there is no folder '" + parent.string() + "'");
    if (request.keep && fs::exists(*request.keep) &&
        !(fs::is_directory(*request.keep) && fs::is_empty(*request.keep)))
      wrong("--keep: '" + *request.keep + "' is neither a new nor an empty folder");
    request.has_gemm = !options_.no_gemm;
    request.a = {.program = options_.program.value_or(context_.program).string(),
                 .arguments = context_.words,
                 .num_ranks = options_.nproc.value_or(""),
                 .command = ""};
    take_other_side(request);
    for (const BenchSide* side : {&request.a, request.b ? &*request.b : nullptr})
      if (side && side->command.empty()) look_at(*side);
    if (!request.b && options_.pairs)
      wrong("--pairs counts runs of a comparison: give --against or a --vs- flag too");
    TITAN_CHECK(problems_.empty(), config, problems_,
                "nothing was started; see: titan bench --help");
    return request;
  }

 private:
  void wrong(const std::string& what) { problems_ += what + "\n"; }

  void take_other_side(BenchRequest& request) {
    const bool has_job =
        options_.vs_flags || options_.vs_config || options_.vs_program || options_.vs_nproc;
    const auto& command = options_.against;
    if (command && has_job)
      wrong(
          "--against compares with another command, the --vs- flags with "
          "a job of Titan: give one or the other");
    if (command) request.b = {.program = "", .arguments = {}, .num_ranks = "", .command = *command};
    if (command && command->empty()) wrong("--against is empty");
    if (command || !has_job) return;
    request.b = request.a;
    if (const auto& file = options_.vs_config)
      request.b->arguments = overridden(request.b->arguments, {"--job.config_file", *file});
    if (const auto& flags = options_.vs_flags) {
      try {
        request.b->arguments = overridden(request.b->arguments, words_in(*flags));
      } catch (const Error& e) {
        wrong(e.message());
      }
    }
    if (const auto& program = options_.vs_program) request.b->program = *program;
    if (const auto& ranks = options_.vs_nproc) request.b->num_ranks = *ranks;
  }

  void look_at(const BenchSide& side) {
    if (!fs::exists(side.program)) wrong("there is no program '" + side.program + "'");
    for (const std::string& word : words_of(BenchSide{}, {}, "")) {
      if (!word.starts_with("--")) continue;
      const std::string key = word.substr(0, word.find('='));
      for (const std::string& given : side.arguments)
        if (given == key || given.starts_with(key + "="))
          wrong(given + " is set by titan bench itself" +
                (key == "--training.steps" ? ": use --warmup and --steps" : ""));
    }
  }

  const BenchOptions& options_;
  const CommandContext& context_;
  std::string problems_;
};

class Bench {
 public:
  explicit Bench(const BenchRequest& request) : request_(request), folder_(request.keep) {}

  void run() {
    if (request_.b) {
      check_both();
      compare();
    } else {
      const BenchFigures figures = measure(request_.a);
      say(to_text(figures, request_.steps));
      write("figures", to_value(figures));
    }
  }

 private:
  bool is_json_shown() const { return request_.json == "-"; }
  /// Standard output is reserved for the JSON when --json is '-'.
  void say(const std::string& text) const {
    is_json_shown() ? print_to_errors(text) : print(text);
    std::fflush(stdout);
  }

  BenchFigures measure(const BenchSide& side) {
    const fs::path folder = folder_.path() / std::to_string(++num_runs_);
    BenchFigures figures = run_once(side, request_.steps, folder, signals_);
    if (side.command.empty()) facts_ = figures;
    if (request_.has_gemm && facts_) figures.gemm_flops = measured_gemm(*facts_, signals_);
    return figures;
  }

  /// Checks both jobs before either starts.
  void check_both() {
    std::string mistakes = mistakes_in(request_.a, request_.steps, folder_.path(), signals_);
    const std::string others = mistakes_in(*request_.b, request_.steps, folder_.path(), signals_);
    if (!others.empty() && others != mistakes) mistakes += others;
    TITAN_CHECK(mistakes.empty(), config, mistakes, "nothing was measured");
  }

  void compare() {
    const BenchPairs pairs = run_pairs(
        request_.num_pairs, [&](bool is_a) { return measure(is_a ? request_.a : *request_.b); },
        [&](const BenchPairs& done) {
          const double a = done.a.back().tokens_per_second, b = done.b.back().tokens_per_second;
          std::ostringstream line;
          line << "pair " << done.a.size() << " of " << request_.num_pairs << ": " << a << " and "
               << b << " tokens/s, A over B " << a / b << "\n";
          say(line.str());
        });
    const std::vector<BenchRatio> ratios = ratios_of(pairs);
    say("\nA, its last run\n" + to_text(pairs.a.back(), request_.steps) + "\nB, its last run\n" +
        to_text(pairs.b.back(), request_.steps) + "\n" + to_text(ratios));
    Value::List a, b;
    for (const BenchFigures& figures : pairs.a) a.push_back(to_value(figures));
    for (const BenchFigures& figures : pairs.b) b.push_back(to_value(figures));
    write("pairs", Value::map({{"ratios", to_value(ratios)}, {"a", a}, {"b", b}}));
  }

  void write(const char* what, Value value) const {
    if (!request_.json) return;
    Value all = Value::map({{"schema", 1},
                            {"steps", Value::map({{"warmup", request_.steps.warmup},
                                                  {"measured", request_.steps.measured},
                                                  {"interval", request_.steps.interval}})}});
    all[what] = std::move(value);
    const std::string text = to_json(all, 2) + "\n";
    is_json_shown() ? print_json(text) : write_text_atomically(*request_.json, text);
  }

  BenchRequest request_;
  BenchFolder folder_;
  SignalInbox signals_;
  std::optional<BenchFigures> facts_;  // of Titan's last run: which GEMM to measure next to it
  int num_runs_ = 0;
};

class BenchCommand final : public Command {
 public:
  static constexpr CommandWords kWords{.most = std::numeric_limits<size_t>::max(),
                                       .takes_job = true};

  BenchCommand(const BenchOptions& options, const CommandContext& context)
      : options_(options), context_(context) {}

  int run() override {
    Bench(RequestReader(options_, context_).read()).run();
    return kExitDone;
  }

 private:
  BenchOptions options_;
  CommandContext context_;
};

}  // namespace
}  // namespace titan::commands

TITAN_PLUGIN(plugin) {
  using titan::commands::kFewestPairs;
  using titan::commands::kMostSteps;
  using Options = titan::commands::BenchOptions;
  plugin
      .add<titan::commands::BenchCommand>(
          "bench", "measure how fast a job trains, or which of two is faster")
      .option("warmup", &Options::warmup, "steps of warm-up, not measured")
      .between(1, kMostSteps)
      .option("steps", &Options::steps, "measured steps")
      .between(1, kMostSteps)
      .option("interval", &Options::interval,
              "read the clock every N steps; larger values wait for a GPU less often")
      .between(1, kMostSteps)
      .option("nproc", &Options::nproc,
              "number of ranks, started by titan launch: a number, 'cpu', 'gpu', 'auto'")
      .option("json", &Options::json, "file for all results as JSON; '-': standard output")
      .option("keep", &Options::keep, "keep the files of the runs in this new folder")
      .option("program", &Options::program, "the titan program to measure (default: this one)")
      .option("no_gemm", &Options::no_gemm, "do not measure GEMMs next to the runs")
      .option("against", &Options::against, "compare with this shell command, in alternating runs")
      .option("vs_flags", &Options::vs_flags,
              "compare with the same job with these flags in addition")
      .option("vs_config", &Options::vs_config, "compare with the same flags on this configuration")
      .option("vs_program", &Options::vs_program,
              "compare with the same job run by another titan program")
      .option("vs_nproc", &Options::vs_nproc, "compare with the same job on this number of ranks")
      .option("pairs", &Options::pairs, "runs of each side of a comparison (default 7)")
      .between(kFewestPairs, kMostSteps);
}
