// Formats results in lm-evaluation-harness's JSON and as a table. No torch.
#pragma once

#include <string>
#include <vector>

#include <titan/value.h>

#include "scores.h"

namespace titan::evaluation {

/// The members of results.json that describe tasks: "results" (per task: alias, sample_len,
/// "acc,none", "acc_stderr,none", ...), "n-samples", "n-shot", "configs", "versions",
/// "higher_is_better".
Value results_json(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores);

/// The lines of samples_<task>.jsonl, one per document: doc_id, doc, target, arguments, resps and
/// filtered_resps ([log-likelihood, is greedy] as text), and the document's value of each metric.
std::string samples_jsonl(const Task& task, const Answers& answers, const TaskScores& scores);

/// Columns: task, documents, metric, value and standard error.
std::string results_table(const std::vector<Task>& tasks, const std::vector<TaskScores>& scores);

}  // namespace titan::evaluation
