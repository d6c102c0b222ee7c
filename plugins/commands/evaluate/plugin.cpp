// Registers command:evaluate and watcher:task_scores.
#include <titan/plugin.h>

#include "evaluate.h"
#include "task_scores.h"

namespace {

void add_evaluate(titan::Plugin& plugin) {
  using Options = titan::evaluation::EvaluateOptions;
  auto& command =
      plugin
          .add<titan::evaluation::Evaluate>(
              "evaluate", "score a model on tasks: choices, continuations, perplexity")
          .option("checkpoint", &Options::checkpoint,
                  "a Titan checkpoint, a folder of checkpoints (the newest one), or a Hugging Face "
                  "folder, whose config.json determines the model")
          .option(
              "tasks", &Options::tasks,
              "a task (*.toml), plain data (*.jsonl) or a folder of these; may be given several "
              "times")
          .option("json", &Options::json, "the results as JSON instead of a table")
          .option("output", &Options::output, "file for the results as JSON")
          .option("log_samples", &Options::log_samples,
                  "also write each document's requests, answers and scores to samples_TASK.jsonl "
                  "next to that file")
          .option("limit", &Options::limit, "the first N documents of each task")
          .at_least(1)
          .option("batch_tokens", &Options::batch_tokens, "tokens per forward")
          .at_least(1)
          .option("max_length", &Options::max_length,
                  "context length in tokens; unset: the model's")
          .at_least(1)
          .option("add_bos_token", &Options::add_bos_token,
                  "add BOS before a text; auto: like transformers' tokenizer")
          .one_of({"auto", "true", "false"})
          .option("bootstrap_iters", &Options::bootstrap_iters,
                  "samples for the standard error of a perplexity; 0: none")
          .at_least(0);
  titan::declare_rank_flags<Options>(command);
}

void add_task_scores(titan::Plugin& plugin) {
  using Options = titan::evaluation::TaskScoresOptions;
  plugin
      .add<titan::evaluation::TaskScoring>(
          "task_scores", "Scores the model on tasks during training, like titan evaluate.")
      .option("tasks", &Options::tasks,
              "Task files, plain data or folders, as for titan evaluate --tasks")
      .fed_by("validation.tasks")
      .option("tasks_freq", &Options::tasks_freq, "Steps between scores; unset: freq")
      .at_least(1)
      .fed_by("validation.tasks_freq")
      .option("freq", &Options::freq, "Steps between validations")
      .at_least(1)
      .fed_by("validation.freq")
      .option("seq_len", &Options::seq_len, "Context length in tokens")
      .at_least(1)
      .fed_by("validation.seq_len")
      .option("local_batch_size", &Options::local_batch_size,
              "Sequences of seq_len tokens per forward")
      .at_least(1)
      .fed_by("validation.local_batch_size")
      .option("hf_assets_path", &Options::hf_assets_path, "Folder of the tokenizer")
      .fed_by("model.hf_assets_path");
}

}  // namespace

TITAN_PLUGIN(plugin) {
  add_evaluate(plugin);
  add_task_scores(plugin);
}
