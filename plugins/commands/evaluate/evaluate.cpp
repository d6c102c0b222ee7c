#include "evaluate.h"

#include <cstdio>
#include <utility>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/log.h>
#include <titan/program/clock.h>
#include <titan/program/exit_codes.h>
#include <titan/program/quantity_text.h>
#include <titan/program/terminal.h>

#include "read_tasks.h"
#include "results.h"
#include "scorer.h"

namespace titan::evaluation {

Evaluate::Evaluate(const EvaluateOptions& options, CommandContext context)
    : options_(options), context_(std::move(context)) {
  std::string wrong;
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) wrong += (wrong.empty() ? "" : "\n") + what;
  };
  require(!options.checkpoint.empty(),
          "titan evaluate needs --checkpoint FOLDER; see: titan evaluate --help");
  require(!options.tasks.empty(),
          "titan evaluate needs --tasks FILE or FOLDER; see: titan evaluate --help");
  require(!options.log_samples || !options.output.empty(),
          "--log-samples writes next to the file of --output, which is missing");
  TITAN_CHECK(wrong.empty(), config, wrong);
}

int Evaluate::run() {
  tasks_ = read_tasks({options_.tasks.begin(), options_.tasks.end()}, options_.limit);
  const auto model = context_.engines->open({"titan evaluate", context_.words, options_},
                                            options_.checkpoint, /*is_chat=*/false);
  model->with_ranks([&] { evaluate_all(model->engine()); });
  return kExitDone;
}

void Evaluate::evaluate_all(Engine& engine) const {
  TITAN_CHECK(
      engine.tokenizer(), config,
      "tasks are text, but there is no tokenizer: set --model.hf_assets_path to its folder");
  const int64_t context = engine.context();
  const int64_t max_length = options_.max_length.value_or(context);
  TITAN_CHECK(max_length <= context, config, "--max-length ", max_length,
              " is more than the model's context of ", context);
  const std::string assets = engine.config().at("model").at("hf_assets_path").as_string();
  const TokenRules rules = {.adds_bos = options_.add_bos_token == "auto"
                                            ? adds_bos(assets)
                                            : options_.add_bos_token == "true",
                            .max_length = max_length};
  const double date = wall_seconds(), begin = monotonic_seconds();
  const std::vector<Request> requests = make_requests(tasks_, *engine.tokenizer(), rules);
  Scorer scorer(engine.executor(), engine.mesh(), engine.device(),
                {.batch_tokens = options_.batch_tokens,
                 .vocab_size = engine.model().vocab_size(),
                 .tokens_multiple = engine.part().num_sequence_cuts()});
  const std::vector<Answers> answers = answers_by_task(tasks_, requests, scorer.score(requests));
  if (engine.mesh().rank() != 0) return;
  std::vector<TaskScores> scores;
  for (size_t i = 0; i < answers.size(); ++i)
    scores.push_back(score(tasks_[i], answers[i], options_.bootstrap_iters));
  const double seconds = monotonic_seconds() - begin;
  show(answers, scores, run_facts(rules, date, seconds));
  char text[120];
  std::snprintf(text, sizeof text, " requests, %s tokens, in %.3f s",
                with_commas(scorer.num_tokens()).c_str(), seconds);
  log::info(with_commas(static_cast<int64_t>(requests.size())) + text);
}

/// The facts that lm-evaluation-harness writes about a run in addition to its tasks.
Value Evaluate::run_facts(const TokenRules& rules, double date, double seconds) const {
  return Value::map({{"model", "titan"},
                     {"model_args", Value::map({{"checkpoint", options_.checkpoint.string()},
                                                {"max_length", rules.max_length},
                                                {"add_bos_token", rules.adds_bos}})},
                     {"batch_tokens", options_.batch_tokens},
                     {"limit", options_.limit ? Value(*options_.limit) : Value()},
                     {"date", date},
                     {"seconds", seconds}});
}

void Evaluate::show(const std::vector<Answers>& answers, const std::vector<TaskScores>& scores,
                    const Value& facts) const {
  Value results = results_json(tasks_, scores);
  results["config"] = facts;
  if (options_.json)
    print_json(to_json(results, 2) + "\n");
  else
    print(results_table(tasks_, scores));
  if (options_.output.empty()) return;
  if (options_.log_samples)
    for (size_t i = 0; i < answers.size(); ++i)
      write_text_atomically(
          options_.output.parent_path() / ("samples_" + tasks_[i].name() + ".jsonl"),
          samples_jsonl(tasks_[i], answers[i], scores[i]));
  write_text_atomically(options_.output, to_json(results, 2) + "\n");
}

}  // namespace titan::evaluation
