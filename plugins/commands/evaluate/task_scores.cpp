#include "task_scores.h"

#include <cstdio>
#include <deque>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/nn/attention_layer.h>
#include <titan/shown_text.h>

#include "read_tasks.h"
#include "scores.h"

namespace titan::evaluation {

TaskScoring::TaskScoring(const TaskScoresOptions& options, WatcherContext context)
    : options_(options), context_(std::move(context)) {
  const bool is_simulated = context_.device.device().is_meta();
  if (is_simulated && !context_.tokenizer) return;
  TITAN_CHECK(context_.tokenizer, config,
              "validation.tasks are text, but there is no tokenizer; set model.hf_assets_path");
  tasks_ = read_tasks({options_.tasks.begin(), options_.tasks.end()});
  requests_ = make_requests(
      tasks_, *context_.tokenizer,
      {.adds_bos = adds_bos(options_.hf_assets_path), .max_length = options_.seq_len});
}

void TaskScoring::attach(ModelPart& part) {
  part.visit_modules([](const std::string& path, nn::Module& module) {
    auto* attention = dynamic_cast<nn::AttentionLayer*>(&module);
    if (!attention) return;
    const std::string& owner = attention->core().kernel_owners().replaced_by;
    TITAN_CHECK(owner.empty(), config, "validation.tasks: tasks cannot be scored while '", owner,
                "' computes the attention of ", path, "; score checkpoints with titan evaluate");
  });
}

void TaskScoring::start(const WatcherStart& start) {
  scorer_.emplace(start.executor, context_.mesh, context_.device.device(),
                  ScorerOptions{.batch_tokens = options_.local_batch_size * options_.seq_len,
                                .vocab_size = start.model.vocab_size(),
                                .tokens_multiple = start.part.num_sequence_cuts()});
}

bool TaskScoring::validates(int64_t step) const {
  return step % options_.tasks_freq.value_or(options_.freq) == 0;
}

void TaskScoring::validate(int64_t step) {
  const std::vector<Answers> answers =
      answers_by_task(tasks_, requests_, scorer_->score(requests_));
  std::deque<std::string> names;  // the scalars refer to them
  std::vector<Scalar> scalars;
  std::string text = "tasks after step " + std::to_string(step) + ":";
  const auto add = [&](std::string name, double value) {
    scalars.push_back({names.emplace_back(std::move(name)), value});
  };
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string name = "validation_metrics/" + tasks_[i].name() + "/";
    text += (i > 0 ? "; " : " ") + printable(tasks_[i].name());
    const char* between = " ";
    for (const Metric& metric : score(tasks_[i], answers[i]).metrics) {
      add(name + metric.name, metric.value);
      char value[40];
      std::snprintf(value, sizeof value, " %.4g", metric.value);
      text += std::exchange(between, ", ") + metric.name + value;
      if (metric.standard_error) add(name + metric.name + "_stderr", *metric.standard_error);
    }
  }
  context_.log.log(step, scalars);
  if (context_.mesh.rank() == 0) log::info(text);
}

}  // namespace titan::evaluation
