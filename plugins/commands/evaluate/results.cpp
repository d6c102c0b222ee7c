#include "results.h"

#include <cstdio>

#include <titan/program/quantity_text.h>
#include <titan/program/text_table.h>

namespace titan::evaluation {
namespace {

constexpr const char* kFilter = ",none";  // the harness's name for unfiltered answers

std::string fixed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, value != 0 && value < 1000 ? "%.4f" : "%.4g",
                without_nan_sign(value));
  return text;
}

Value error_of(const Metric& metric) {
  return metric.standard_error ? Value(*metric.standard_error) : Value("N/A");
}

/// The harness shows Python's repr of the number and of the boolean.
Value response(const Task& task, const LogLikelihood& answer) {
  const std::string sum = to_json(Value(answer.sum));
  if (task.kind() == TaskKind::loglikelihood_rolling) return sum;
  return Value::list({sum, answer.is_greedy ? "True" : "False"});
}

}  // namespace

Value results_json(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores) {
  Value results = Value::map(), counts = Value::map(), shots = Value::map();
  Value configs = Value::map(), versions = Value::map(), higher = Value::map();
  const Schema schema = task_schema();
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const auto num_documents = static_cast<int64_t>(task.documents.size());
    Value own = Value::map({{"alias", task.name()}, {"sample_len", num_documents}});
    Value is_higher = Value::map();
    for (const Metric& metric : scores[i].metrics) {
      own[metric.name + kFilter] = metric.value;
      own[metric.name + "_stderr" + kFilter] = error_of(metric);
      is_higher[metric.name] = metric.higher_is_better;
    }
    results[task.name()] = own;
    counts[task.name()] = Value::map(
        {{"original", static_cast<int64_t>(task.num_original)}, {"effective", num_documents}});
    shots[task.name()] = task.options.num_fewshot;
    configs[task.name()] = schema.read(&task.options);
    versions[task.name()] = 0;
    higher[task.name()] = is_higher;
  }
  return Value::map({{"results", results},
                     {"configs", configs},
                     {"versions", versions},
                     {"n-shot", shots},
                     {"higher_is_better", higher},
                     {"n-samples", counts}});
}

std::string samples_jsonl(const Task& task, const Answers& answers, const TaskScores& scores) {
  std::string lines;
  Value metrics = Value::list();
  for (const Metric& metric : scores.metrics) metrics.as_list().emplace_back(metric.name);
  for (size_t i = 0; i < answers.size(); ++i) {
    const TaskDocument& document = task.documents[i];
    Value arguments = Value::map(), responses = Value::list(), filtered = Value::list();
    for (size_t j = 0; j < document.continuations.size(); ++j) {
      Value texts = Value::map({{"arg_0", document.continuations[j]}});
      if (task.kind() != TaskKind::loglikelihood_rolling)
        texts = Value::map({{"arg_0", document.context}, {"arg_1", document.continuations[j]}});
      arguments["gen_args_" + std::to_string(j)] = texts;
      responses.as_list().push_back(Value::list({response(task, answers[i][j])}));
      filtered.as_list().push_back(response(task, answers[i][j]));
    }
    Value line = Value::map({{"doc_id", static_cast<int64_t>(i)},
                             {"doc", document.source},
                             {"target", document.target},
                             {"arguments", arguments},
                             {"resps", responses},
                             {"filtered_resps", filtered},
                             {"filter", "none"},
                             {"metrics", metrics}});
    for (const auto& [metric, value] : scores.documents[i]) line[metric] = value;
    lines += to_json(line) + "\n";
  }
  return lines;
}

std::string results_table(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores) {
  std::vector<TextRow> rows = {{"task", "documents", "metric", "value", "standard error"}};
  for (size_t i = 0; i < tasks.size(); ++i) {
    bool is_first = true;
    for (const Metric& metric : scores[i].metrics) {
      rows.push_back({is_first ? tasks[i].name() : "",
                      is_first ? std::to_string(tasks[i].documents.size()) : "", metric.name,
                      fixed(metric.value),
                      metric.standard_error ? fixed(*metric.standard_error) : ""});
      is_first = false;
    }
  }
  return text_table(rows);
}

}  // namespace titan::evaluation
