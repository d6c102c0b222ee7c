// `titan evaluate`: a model's scores on tasks, of a checkpoint or a Hugging Face folder, under any
// layout.
#include <cstdio>
#include <optional>

#include <boost/program_options.hpp>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>

#include "core/commands/models/models.h"
#include "core/commands/own_flags.h"
#include "core/engine/trained_model.h"
#include "core/evaluate/read_tasks.h"
#include "core/evaluate/results.h"
#include "core/evaluate/scoring/scorer.h"

namespace titan::core {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

constexpr const char* kEvaluateUsage =
    "usage: titan evaluate --checkpoint FOLDER --tasks FILE|FOLDER... [OPTION]...\n"
    "                      [--section.key VALUE]...\n"
    "\n"
    "  --checkpoint FOLDER      a step of ours, a folder of steps (the newest), or a Hugging Face\n"
    "                           folder, whose config.json and tokenizer say which model it is\n"
    "  --tasks FILE             a task (*.toml), plain data (*.jsonl) or a folder of these; may "
    "be\n"
    "                           given several times\n"
    "  --json                   the results as JSON instead of a table\n"
    "  --output FILE            write the results as JSON there\n"
    "  --log-samples            and what every document got, to samples_TASK.jsonl beside it\n"
    "  --limit N                the first N documents of each task\n"
    "  --batch-tokens N         tokens that are computed at once (default 4096)\n"
    "  --max-length N           tokens that the model sees at once (default: its context)\n"
    "  --add-bos-token true|false\n"
    "                           put BOS in front of a text (default: as transformers' tokenizer)\n"
    "  --bootstrap-iters N      samples for the standard error of a perplexity (default 100000)\n"
    "  --rank, --world-size, --local-rank, --master\n"
    "                           as of titan train; titan launch -- evaluate ... starts ranks\n"
    "  --job.config_file FILE, --section.key VALUE\n"
    "                           the model and the layout, as titan train takes them:\n"
    "                           --parallelism.tensor_parallel_degree 2\n";

struct EvaluateArguments {
  bool help = false, json = false, logs_samples = false;
  fs::path checkpoint, output;
  std::vector<Task> tasks;
  std::optional<int64_t> limit, max_length;
  std::optional<bool> adds_bos;
  int64_t batch_tokens = 4096, bootstrap_iterations = 100000;
  LaunchFlags launch;
  std::vector<std::string> config;
};

EvaluateArguments parse_evaluate(const std::vector<std::string>& words) {
  po::options_description own("titan evaluate");
  using Strings = std::vector<std::string>;
  own.add_options()("help", "")("checkpoint", po::value<std::string>(), "")(
      "tasks", po::value<Strings>()->composing(), "")("json", "")(
      "output", po::value<std::string>(), "")("log-samples", "")("limit", po::value<int64_t>(), "")(
      "batch-tokens", po::value<int64_t>(), "")("max-length", po::value<int64_t>(), "")(
      "bootstrap-iters", po::value<int64_t>(), "")("add-bos-token", po::value<std::string>(), "");
  add_launch_flags(own);
  const OwnFlags flags = take_own_flags(words, own, "titan evaluate");
  const po::variables_map& values = flags.values;
  EvaluateArguments result;
  result.help = values.count("help") > 0;
  if (result.help) return result;
  take_flag<std::string>(values, "checkpoint", result.checkpoint);
  take_flag<std::string>(values, "output", result.output);
  result.json = values.count("json") > 0;
  result.logs_samples = values.count("log-samples") > 0;
  take_flag<int64_t>(values, "limit", result.limit);
  take_flag<int64_t>(values, "max-length", result.max_length);
  take_flag<int64_t>(values, "batch-tokens", result.batch_tokens);
  take_flag<int64_t>(values, "bootstrap-iters", result.bootstrap_iterations);
  result.launch = launch_flags(values);
  result.config = flags.rest;

  std::string wrong, bos;
  take_flag<std::string>(values, "add-bos-token", bos);
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) wrong += (wrong.empty() ? "" : "\n") + what;
  };
  require(values.count("checkpoint"),
          "titan evaluate needs --checkpoint FOLDER; see: titan evaluate --help");
  require(values.count("tasks"),
          "titan evaluate needs --tasks FILE or FOLDER; see: titan evaluate --help");
  require(result.batch_tokens >= 1, "--batch-tokens must be >= 1");
  require(result.limit.value_or(1) >= 1, "--limit must be >= 1");
  require(result.max_length.value_or(1) >= 1, "--max-length must be >= 1");
  require(result.bootstrap_iterations >= 0, "--bootstrap-iters must be >= 0 (0: none)");
  require(bos.empty() || bos == "true" || bos == "false",
          "--add-bos-token must be true or false, got " + in_quotes(bos));
  require(!result.logs_samples || !result.output.empty(),
          "--log-samples writes beside the file of --output, which is missing");
  TITAN_CHECK(wrong.empty(), config, wrong);
  if (!bos.empty()) result.adds_bos = bos == "true";
  std::vector<fs::path> paths;
  for (const std::string& path : values["tasks"].as<Strings>()) paths.emplace_back(path);
  result.tasks = read_tasks(paths, result.limit);
  return result;
}

/// What the harness tells about a run beside its tasks.
Value run_facts(const EvaluateArguments& arguments, const TokenRules& rules, double date,
                double seconds) {
  return Value::map({{"model", "titan"},
                     {"model_args", Value::map({{"checkpoint", arguments.checkpoint.string()},
                                                {"max_length", rules.max_length},
                                                {"add_bos_token", rules.adds_bos}})},
                     {"batch_tokens", arguments.batch_tokens},
                     {"limit", arguments.limit ? Value(*arguments.limit) : Value()},
                     {"date", date},
                     {"seconds", seconds}});
}

void show(const EvaluateArguments& arguments, const std::vector<Answers>& answers,
          const std::vector<TaskScores>& scores, const Value& facts) {
  Value results = results_json(arguments.tasks, scores);
  results["config"] = facts;
  if (arguments.json)
    print_json(to_json(results, 2) + "\n");
  else
    print(results_table(arguments.tasks, scores));
  if (arguments.output.empty()) return;
  if (arguments.logs_samples)
    for (size_t i = 0; i < answers.size(); ++i) {
      const Task& task = arguments.tasks[i];
      write_text_atomically(arguments.output.parent_path() / ("samples_" + task.name() + ".jsonl"),
                            samples_jsonl(task, answers[i], scores[i]));
    }
  write_text_atomically(arguments.output, to_json(results, 2) + "\n");
}

void evaluate_all(const EvaluateArguments& arguments, TrainedModel& model) {
  Engine& engine = model.engine();
  TITAN_CHECK(
      engine.tokenizer(), config,
      "tasks are text, but there is no tokenizer: set --model.hf_assets_path to its folder");
  const int64_t context = engine.context();
  const int64_t max_length = arguments.max_length.value_or(context);
  TITAN_CHECK(max_length <= context, config, "--max-length ", max_length,
              " is more than the model's context of ", context);
  const TokenRules rules = {
      .adds_bos = arguments.adds_bos.value_or(adds_bos(model.config().model.hf_assets_path)),
      .max_length = max_length};
  const double date = wall_seconds(), begin = monotonic_seconds();
  const std::vector<Request> requests = make_requests(arguments.tasks, *engine.tokenizer(), rules);
  Scorer scorer(engine.executor(), engine.mesh(), engine.device(),
                {.batch_tokens = arguments.batch_tokens,
                 .vocab_size = engine.model().vocab_size(),
                 .tokens_multiple = engine.part().num_sequence_cuts()});
  const std::vector<Answers> answers =
      answers_by_task(arguments.tasks, requests, scorer.score(requests));
  if (engine.mesh().rank() != 0) return;
  std::vector<TaskScores> scores;
  for (size_t i = 0; i < answers.size(); ++i)
    scores.push_back(score(arguments.tasks[i], answers[i], arguments.bootstrap_iterations));
  const double seconds = monotonic_seconds() - begin;
  show(arguments, answers, scores, run_facts(arguments, rules, date, seconds));
  char text[120];
  std::snprintf(text, sizeof text, " requests, %s tokens, in %.3f s",
                with_commas(scorer.num_tokens()).c_str(), seconds);
  log::info(with_commas(static_cast<int64_t>(requests.size())) + text);
}

}  // namespace

int evaluate_model(const std::vector<std::string>& words) {
  const EvaluateArguments arguments = parse_evaluate(words);
  if (arguments.help) {
    print(kEvaluateUsage);
    return kExitDone;
  }
  TrainedModel model(arguments.checkpoint, arguments.config, arguments.launch, "titan evaluate",
                     /*is_chat=*/false);
  model.with_ranks([&] { evaluate_all(arguments, model); });
  return kExitDone;
}

}  // namespace titan::core
