#include "core/train/task_validator.h"

#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include <titan/error.h>
#include <titan/log.h>
#include <titan/nn/attention_layer.h>
#include <titan/shown_text.h>

#include "core/data/no_tokenizer.h"
#include "core/evaluate/read_tasks.h"
#include "core/evaluate/scores.h"

namespace titan::core {
namespace {

/// Tokens of a batch: as many as a validation with data holds at once.
int64_t batch_tokens(const ValidationSection& section) {
  return section.local_batch_size * section.seq_len;
}

void check_attention(ModelPart& part) {
  part.visit_modules([](const std::string& path, nn::Module& module) {
    auto* attention = dynamic_cast<nn::AttentionLayer*>(&module);
    if (!attention) return;
    const std::string& taker = attention->core().kernel_takers().replaced_by;
    TITAN_CHECK(taker.empty(), config, "validation.tasks: tasks cannot be scored while '", taker,
                "' computes the attention of ", path, "; score checkpoints with titan evaluate");
  });
}

}  // namespace

OpenedTasks open_tasks(const JobConfig& config, const Tokenizer& tokenizer) {
  OpenedTasks opened;
  const ValidationSection& section = config.validation;
  TITAN_CHECK(!as_none(tokenizer), config,
              "validation.tasks are text, but there is no tokenizer; set model.hf_assets_path");
  opened.tasks = read_tasks({section.tasks.begin(), section.tasks.end()});
  opened.requests = make_requests(
      opened.tasks, tokenizer,
      {.adds_bos = adds_bos(config.model.hf_assets_path), .max_length = section.seq_len});
  return opened;
}

TaskValidator::TaskValidator(OpenedTasks opened, const ValidationSection& section, ModelPart& part,
                             int64_t vocab_size, StepExecutor& executor, const dist::Mesh& mesh,
                             Device& device, LoggerSet& loggers)
    : opened_(std::move(opened)),
      freq_(section.tasks_freq.value_or(section.freq)),
      scorer_(executor, mesh, device.device(),
              {.batch_tokens = batch_tokens(section),
               .vocab_size = vocab_size,
               .tokens_multiple = part.num_sequence_cuts()}),
      loggers_(loggers),
      is_rank_zero_(mesh.rank() == 0) {
  check_attention(part);
}

void TaskValidator::run(int64_t step) {
  const std::vector<Answers> answers =
      answers_by_task(opened_.tasks, opened_.requests, scorer_.score(opened_.requests));
  std::deque<std::string> names;  // that the scalars refer to
  std::vector<Scalar> scalars;
  std::string said = "tasks after step " + std::to_string(step) + ":";
  const auto add = [&](std::string name, double value) {
    scalars.push_back({names.emplace_back(std::move(name)), value});
  };
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string name = "validation_metrics/" + opened_.tasks[i].name() + "/";
    said += (i > 0 ? "; " : " ") + printable(opened_.tasks[i].name());
    const char* between = " ";
    for (const Metric& metric : score(opened_.tasks[i], answers[i]).metrics) {
      add(name + metric.name, metric.value);
      char value[40];
      std::snprintf(value, sizeof value, " %.4g", metric.value);
      said += std::exchange(between, ", ") + metric.name + value;
      if (metric.standard_error) add(name + metric.name + "_stderr", *metric.standard_error);
    }
  }
  loggers_.log(step, scalars);
  if (is_rank_zero_) log::info(said);
}

}  // namespace titan::core
