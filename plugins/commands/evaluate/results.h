// What was found, as lm-evaluation-harness writes it down and as a table. No torch.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

#include "scores.h"

namespace titan::evaluation {

/// results.json's members that are about tasks: "results" (a task: alias, sample_len, "acc,none",
/// "acc_stderr,none", ...), "n-samples", "n-shot", "configs", "versions", "higher_is_better".
Value results_json(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores);

/// A line for each document of samples_<task>.jsonl: doc_id, doc, target, arguments, resps and
/// filtered_resps ([log-likelihood, is greedy] as text), and what the document counts for metrics.
std::string samples_jsonl(const Task& task, const Answers& answers, const TaskScores& scores);

/// Task, documents, metric, value and standard error.
std::string results_table(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores);

}  // namespace titan::evaluation
